"""What a run costs on hardware that is not here: compile its steps for it, and count.

config -> machines.find -> program.compile_step -> roofline -> advice -> report
"""
