"""The crash harness: a real service under writers and faults of every kind, and a checker that proves its promises.

`python -m tests.crash --minutes N --seed S` from the project's folder. It imports nothing of animed: what it knows is
what the writers did, what lies in the folders, what the service logged, and what its commands answer.
"""
