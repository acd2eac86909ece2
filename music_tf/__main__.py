"""`python -m music_tf VERB`, the same as `music-tf VERB`."""

from music_tf.cli import main

if __name__ == "__main__":
    main()
