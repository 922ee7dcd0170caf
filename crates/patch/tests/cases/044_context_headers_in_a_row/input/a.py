class A:
    def g(self):
        pass
class B:
    def f(self):
        pass
    def g(self):
        pass
