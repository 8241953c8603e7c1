# Commands of this repository; `just` lists them.

_default:
    @just --list

# Real Apache Kafka beside us, on one and on three nodes; see tests/kafka/README.md
kafka *ARGS:
    tests/kafka/run.sh {{ARGS}}
