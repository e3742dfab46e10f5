#include "daemon/outputs/held_sources.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {
namespace {

constexpr std::string_view kSuffix = ".spark-held";  // staging::kHeldSuffix

}  // namespace

asio::awaitable<Result<std::string>> HeldSources::hold(std::string job_folder, std::string name,
                                                       std::int64_t written) {
  workers::Call call;
  call.verb = "hold-source";
  call.subject = "the checkpoints in " + printable(job_folder);
  call.deadline = context_.timings.scan;
  call.request = {{"path", job_folder}, {"name", name}, {"written", written}};
  ++holding_;
  const auto held = co_await context_.runner.run(std::move(call));
  --holding_;
  if (!held) co_return fail(held.error());
  co_return get_string(*held, "source").value_or("");
}

asio::awaitable<void> HeldSources::release(std::string job_folder, std::vector<std::string> held) {
  const auto sources = sources_();
  if (!sources || holding_ > 0) co_return;
  std::erase_if(held, [&](const std::string& name) {
    return std::ranges::any_of(*sources, [&](const std::string& source) {
      const std::filesystem::path path(source);
      return path.filename() == name && path.parent_path().native().ends_with(kSuffix);
    });
  });
  if (held.empty()) co_return;
  workers::Call call;
  call.verb = "tidy-output";
  call.subject = "the checkpoints in " + printable(job_folder);
  call.deadline = context_.timings.scan;
  call.request = {{"path", job_folder}, {"release", json::value_from(held)}};
  const auto released = co_await context_.runner.run(std::move(call));
  if (!released) log::survived(released.error());
}

asio::awaitable<void> HeldSources::release(const std::filesystem::path& source) {
  const std::filesystem::path folder = source.parent_path();
  const std::string name = folder.filename();
  if (!name.ends_with(kSuffix)) co_return;
  std::string job_folder = folder.parent_path() / name.substr(1, name.size() - 1 - kSuffix.size());
  std::vector<std::string> held{source.filename().native()};
  co_await release(std::move(job_folder), std::move(held));
}

}  // namespace spark::outputs
