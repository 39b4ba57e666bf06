"""Small programs that make or check files of this repository; they are not shipped."""
