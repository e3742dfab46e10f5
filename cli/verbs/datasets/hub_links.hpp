// A private cache of Hugging Face for one command: a folder of links to the models that were staged for it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/verbs/datasets/stage_request.hpp"

namespace spark::cli {

// Programs write into their cache even when they only read a model, and copies are read-only. So the folder
// is the command's own, and the models in it are links to the copies.
class HubLinks {
 public:
  // Nothing is made if no model is among them, or if the caller has chosen another cache in HF_HUB_CACHE.
  // Inside another `run`, or a task with `--stage`, the folder has the models of that too. Copies of one
  // model have one name there, so it gets none of them. A folder that can't be made is no error: a model can
  // be loaded by its path.
  static std::unique_ptr<HubLinks> make(const std::vector<StagedDataset>& staged);
  ~HubLinks() { static_cast<void>(remove()); }
  HubLinks(const HubLinks&) = delete;
  HubLinks& operator=(const HubLinks&) = delete;

  bool is_made() const { return !folder_.empty(); }
  const std::vector<std::string>& left_out() const { return left_out_; }  // sentences
  // HF_HUB_CACHE, and unless that is set HF_HUB_OFFLINE with a mark that it was set here. Never HF_HOME:
  // tokens and datasets are there.
  std::map<std::string, std::string> variables() const;
  // Without what the command has put there; a sentence names the folder then.
  std::string remove();

 private:
  HubLinks() = default;
  std::string fill(const std::map<std::string, std::string>& links);  // why not; empty: it is made
  std::filesystem::path folder_;                                      // empty: none
  std::vector<std::string> left_out_;
};

}  // namespace spark::cli
