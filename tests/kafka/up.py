"""up VERSION NODES: starts nodes that outlive this command and prints their bootstrap addresses.
down [VERSION NODES]: ends them. `up` ends those of an earlier `up` of the same name first."""

import sys

import cluster


def place(version, nodes):
    return cluster.HOME / version / f"up-{nodes}"


def up(version="4.4.0", nodes="1"):
    directory = place(version, nodes)
    cluster.end_detached(directory)
    started = cluster.Cluster(version, int(nodes), directory)
    try:
        started.start(bound=False)
    except BaseException:
        started.stop()
        raise
    for node in started.nodes:
        (directory / f"node{node.number}.pid").write_text(str(node.process.pid))
    print(started.bootstrap)


def down(version="*", nodes="*"):
    for directory in cluster.HOME.glob(f"{version}/up-{nodes}"):
        cluster.end_detached(directory)


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]](*sys.argv[2:])
