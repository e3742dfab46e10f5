// Checkpoints that are held for their sendings (staging/outputs/held_source).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/outputs/context.hpp"

namespace spark::outputs {

class HeldSources {
 public:
  // The sources that copies need; none while they are not known.
  using Sources = std::function<std::optional<std::vector<std::string>>()>;
  // `context` outlives it.
  HeldSources(const Context& context, Sources sources) : context_(context), sources_(std::move(sources)) {}

  // Returns the path of the held checkpoint, which is the source to send.
  asio::awaitable<Result<std::string>> hold(std::string job_folder, std::string name, std::int64_t written);
  // Of those that are held for this folder, the ones that no copy needs: its sending has ended, also in an
  // earlier daemon.
  asio::awaitable<void> release(std::string job_folder, std::vector<std::string> held);
  // The same for the source of a copy that has ended; does nothing if it was not held.
  asio::awaitable<void> release(const std::filesystem::path& source);

 private:
  const Context& context_;
  Sources sources_;
  unsigned holding_ = 0;  // calls of hold() in progress
};

}  // namespace spark::outputs
