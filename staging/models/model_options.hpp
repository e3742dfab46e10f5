// A model as a dataset, as the user configures it.
#pragma once

#include <string>
#include <vector>

namespace spark::staging {

// Published: the digests that its publisher left, and its structure (find_model_faults). Complete: also that
// every file of the revision is there. Structure: that alone.
enum class ModelCheck { Published, Complete, Structure, None };

struct ModelOptions {
  std::string name;                    // "ORG/NAME", or "NAME:TAG" of ollama
  std::string revision{};              // a ref or a commit; empty means main
  std::vector<std::string> include{};  // patterns for a file's path in the model, or its name; none means all
  ModelCheck check = ModelCheck::Published;
  std::string expect{};  // "sha256:HEX", see pin_of(); empty means not pinned
};

}  // namespace spark::staging
