def f():
    a()
