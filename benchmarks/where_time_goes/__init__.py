"""`python -m benchmarks.where_time_goes [PATH …]`: what a request costs, step by step.

Each path of a record is put under load, and three things are looked at: the kernel's account of
each thread's processor time, samples of it (`on_cpu`), and, if `strace` is there, the system calls.
A sample belongs to the step of its innermost frame that has one; a step's microseconds are its
share of the samples, of the processor time for a request. On a busy machine they are more, in about
the same proportion. What was found is kept with the results, and the page there has it as a table
and a picture.
"""
