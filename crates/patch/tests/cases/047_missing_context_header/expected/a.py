def food(a):
    pass
