"""For tests, yours and ours: a broker inside the test process, and the doubles of our own seams."""
