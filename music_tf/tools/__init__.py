"""What people look at; nothing else imports it."""
