"""`python -m colearn`."""

from colearn.cli import main

if __name__ == "__main__":
    main()
