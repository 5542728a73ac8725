"""kazoo's counters, for values.test.ts."""
from driver import client, serve
from kazoo.recipe.counter import Counter


def add(path, amount):
    counter = Counter(client, path)
    counter += int(amount)
    return counter.post_value


def add_many(path, count):
    for _ in range(int(count)):
        add(path, 1)


def add_float(path, amount):
    counter = Counter(client, path, default=0.0)
    counter += float(amount)
    return repr(counter.post_value)


def add_count(path, amount):
    counter = Counter(client, path, support_curator=True)
    counter += int(amount)
    return counter.post_value


serve(add=add, addMany=add_many, addFloat=add_float, addCount=add_count)
