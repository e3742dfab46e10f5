#include "daemon/outputs/watch/output_watches.hpp"

#include "daemon/launch.hpp"

namespace spark::outputs {

void OutputWatches::apply(const config::Config& config) {
  std::map<std::string, std::shared_ptr<WatchedOutput>> wanted;
  for (const auto& [name, settings] : config.outputs) {
    const auto old = outputs_.find(name);
    if (old != outputs_.end() && old->second->settings() == settings) {
      wanted[name] = old->second;
      continue;
    }
    auto output = std::make_shared<WatchedOutput>(context_, stage_outs_, settings);
    launch(context_.executor, "output " + name, output->run());
    wanted[name] = std::move(output);
  }
  for (const auto& [name, output] : outputs_) {
    if (!wanted.contains(name) || wanted[name] != output) output->stop();
  }
  outputs_ = std::move(wanted);
  for (const TransferPtr& one : stage_outs_.transfers()) one->config_changed();
}

std::shared_ptr<WatchedOutput> OutputWatches::find(const std::string& name) const {
  const auto found = outputs_.find(name);
  return found == outputs_.end() ? nullptr : found->second;
}

json::array OutputWatches::list() const {
  json::array rows;
  for (const auto& [name, output] : outputs_) rows.push_back(output->to_json());
  return rows;
}

}  // namespace spark::outputs
