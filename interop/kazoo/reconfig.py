"""Changes the membership with kazoo: joining and leaving servers as given by the arguments; prints the result.

usage: reconfig.py hosts super-password joining leaving from-version

Of joining and leaving each may be "-" for none; from-version is a number, or -1.
"""
import sys

from kazoo import exceptions
from kazoo.client import KazooClient

hosts, password, joining, leaving, version = sys.argv[1:6]
client = KazooClient(hosts=hosts, timeout=20)
client.start(timeout=40)
if password != "-":
    client.add_auth("digest", "super:" + password)
try:
    data, stat = client.reconfig(
        joining=None if joining == "-" else joining,
        leaving=None if leaving == "-" else leaving,
        new_members=None,
        from_config=int(version),
    )
    print("committed %s" % data.decode().replace("\n", " | "))
    print("version %x" % stat.mzxid)
except exceptions.ZookeeperError as error:
    print("refused %s" % type(error).__name__)
client.stop()
client.close()
print("done")
