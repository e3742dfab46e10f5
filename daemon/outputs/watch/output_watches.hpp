// Watches each output of the configuration.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "daemon/outputs/watch/watched_output.hpp"

namespace spark::outputs {

class OutputWatches {
 public:
  OutputWatches(const Context& context, StageOuts& stage_outs) : context_(context), stage_outs_(stage_outs) {}

  // Unchanged outputs continue undisturbed.
  void apply(const config::Config& config);

  std::shared_ptr<WatchedOutput> find(const std::string& name) const;
  const std::map<std::string, std::shared_ptr<WatchedOutput>>& all() const { return outputs_; }
  json::array list() const;

 private:
  const Context& context_;
  StageOuts& stage_outs_;
  std::map<std::string, std::shared_ptr<WatchedOutput>> outputs_;  // by name
};

}  // namespace spark::outputs
