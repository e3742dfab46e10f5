// Checkpoints that are held for their sendings (staging/outputs/held_source).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/event.hpp"
#include "daemon/outputs/context.hpp"

namespace spark::outputs {

// The folder that holds checkpoints of a job's folder, and the number of its entries.
struct HoldingFolder {
  std::string path;
  std::size_t entries = 0;
};

class HeldSources {
 public:
  // The sources that copies need; none while they are not known.
  using Sources = std::function<std::optional<std::vector<std::string>>()>;
  // `context` outlives it.
  HeldSources(const Context& context, Sources sources)
      : context_(context), sources_(std::move(sources)), freed_(context.executor) {}

  // Returns the path of the held checkpoint, which is the source to send. Unavailable while another copy
  // reads it: a new name of a file counts as a change of it.
  asio::awaitable<Result<std::string>> hold(std::string checkpoint, std::string holding_folder,
                                            std::int64_t written);
  // What is in that folder and no copy needs: its sending has ended, also in an earlier daemon. Does nothing
  // if it is not such a folder.
  asio::awaitable<void> release(HoldingFolder folder);

 private:
  std::optional<std::vector<std::string>> needed_in(const std::filesystem::path& folder) const;

  const Context& context_;
  Sources sources_;
  std::set<std::string> busy_;  // folders in which something is held, or released, now
  Event freed_;
};

}  // namespace spark::outputs
