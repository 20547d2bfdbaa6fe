"""llama.cpp's own server from the package xllamacpp, started as llama-server would be.

python llama_server.py -m MODEL.gguf --port 8080 -c 2048 -np 2 -t 1
"""

import argparse
import time

import xllamacpp

parser = argparse.ArgumentParser()
parser.add_argument("-m", required=True)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("-c", type=int, default=2048)
parser.add_argument("-np", type=int, default=1)
parser.add_argument("-t", type=int, default=1)
given = parser.parse_args()

params = xllamacpp.CommonParams()
params.model.path = given.m
params.hostnames = [given.host]
params.port = given.port
params.n_ctx = given.c
params.n_parallel = given.np
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.t
server = xllamacpp.Server(params)
while True:
    time.sleep(60)
