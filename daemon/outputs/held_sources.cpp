#include "daemon/outputs/held_sources.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".spark-held";  // staging::kHeldSuffix

bool is_in(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

}  // namespace

asio::awaitable<Result<std::string>> HeldSources::hold(std::string checkpoint, std::string holding_folder,
                                                       std::int64_t written) {
  const fs::path path(checkpoint);
  while (busy_.contains(holding_folder)) co_await freed_.wait();
  const auto sources = sources_();
  const bool is_read = sources && std::ranges::any_of(*sources, [&](const fs::path& source) {
                         return is_in(source, path) || is_in(path, source);
                       });
  if (is_read) co_return fail(Errc::Unavailable, "another copy reads " + printable(checkpoint));
  busy_.insert(holding_folder);
  workers::Call call;
  call.verb = "hold-source";
  call.subject = "the checkpoints in " + printable(path.parent_path().native());
  call.deadline = context_.timings.scan;
  call.request = {
      {"path", path.parent_path().native()}, {"name", path.filename().native()}, {"written", written}};
  const auto held = co_await context_.runner.run(std::move(call));
  busy_.erase(holding_folder);
  freed_.notify();
  if (!held) co_return fail(held.error());
  co_return get_text(*held, "source");
}

// None if all are needed, or that is not known. The job's own name of one counts: the end of the held one's
// is a change of its files.
std::optional<std::vector<std::string>> HeldSources::needed_in(const fs::path& folder) const {
  const std::string name = folder.filename();
  const fs::path job_folder = folder.parent_path() / name.substr(1, name.size() - 1 - kSuffix.size());
  const auto sources = sources_();
  if (!sources) return std::nullopt;
  std::vector<std::string> needed;
  for (const std::string& path : *sources) {
    const fs::path source(path);
    if (is_in(job_folder, source)) return std::nullopt;
    for (const fs::path& parent : {folder, job_folder}) {
      if (is_in(source, parent)) needed.push_back(*source.lexically_relative(parent).begin());
    }
  }
  return needed;
}

asio::awaitable<void> HeldSources::release(HoldingFolder folder) {
  const std::string name = fs::path(folder.path).filename();
  if (folder.entries == 0 || !name.starts_with('.') || !name.ends_with(kSuffix)) co_return;
  while (busy_.contains(folder.path)) co_await freed_.wait();
  const auto sources = sources_();
  const auto needed = needed_in(folder.path);
  if (!needed) co_return;
  const auto held = std::ranges::count_if(*sources, [&](auto& source) { return is_in(source, folder.path); });
  if (static_cast<std::size_t>(held) >= folder.entries) co_return;
  busy_.insert(folder.path);
  workers::Call call;
  call.verb = "release-held";
  call.subject = "the checkpoints in " + printable(folder.path);
  call.deadline = context_.timings.scan;
  call.request = {{"folder", folder.path}, {"keep", json::value_from(*needed)}};
  const auto released = co_await context_.runner.run(std::move(call));
  busy_.erase(folder.path);
  freed_.notify();
  if (!released) log::survived(released.error());
}

}  // namespace spark::outputs
