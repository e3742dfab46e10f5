// Whether a file of weights is whole, as its own header tells: some kB of each file are read, and no tensor.
#pragma once

#include <string>

#include "base/result.hpp"
#include "staging/models/head.hpp"

namespace spark::staging {

struct Weights {
  // The file's fault, "it ends within its header"; empty if it has none.
  std::string fault;
  // Of a model in several files of GGUF: this one's number, from 1 on, and how many there are.
  unsigned part = 1, parts = 1;
};

// A `.safetensors` file: the header's length N (8 bytes), a JSON object of N bytes, and the tensors up to the
// largest of their "data_offsets" (huggingface/safetensors, safetensors/src/tensor.rs). Fails if the file
// can't be read.
Result<Weights> look_at_safetensors(const FileBytes& file);

// A `.gguf` file of version 2 or 3 (ggml-org/ggml, docs/gguf.md). The sizes of a tensor's blocks are those of
// gguf-py/gguf/constants.py; of a type that is not known there, only the begin of its tensors is looked at.
Result<Weights> look_at_gguf(const FileBytes& file);

}  // namespace spark::staging
