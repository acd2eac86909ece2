"""Experience replay: whole episodes, hindsight goals."""
