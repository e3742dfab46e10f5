// The deletion of older copies once a copy is published.
#include <filesystem>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/outputs/transfer.hpp"

namespace spark::outputs {

// At once: the pointer to it may not be moved, and the worker's answer may never come.
// After the copy is published, and in a worker of its own: leases and stagings may begin while a copy is
// sent, which may take hours. If the deletion fails, the copy still counts as sent. A reload restarts the
// deletion.
asio::awaitable<void> Transfer::prune(json::object& sent) {
  Result<json::object> pruned = json::object();
  do {
    keep_ = keep_of(request_, context_.config());
    if (keep_.count == 0) co_return;
    attempt_->cancellation = {};
    pruned = co_await delete_older(keep_);
  } while (!cancelled_ && keep_ != keep_of(request_, context_.config()));
  json::array warnings, removed;
  if (const json::array* known = get_array(sent, "warnings"); known != nullptr) warnings = *known;
  const json::object* failed = pruned ? get_object(*pruned, "failed") : nullptr;
  if (!pruned || failed != nullptr) {
    const Error error = pruned ? error_from_json(*failed) : pruned.error();
    const std::string what = "older copies were not all deleted: " + error.message();
    warnings.emplace_back(printable(what));
    sent["not_deleted"] = printable(what);
    log::warning("stage-out to " + printable(request_.destination()) + ": " + what);
  }
  if (const json::array* names = pruned ? get_array(*pruned, "removed") : nullptr; names != nullptr)
    removed = *names;
  for (const std::string& name : pruned ? get_strings(*pruned, "not_whole") : std::vector<std::string>()) {
    const std::string folder = request_.volume + ":" + request_.folder();
    warnings.emplace_back(name + " in " + folder + " lacks files, so an older copy stays for it; " +
                          "`spark-stage verify` names them");
    log::warning(std::string(warnings.back().as_string()));
  }
  for (std::string& rest : pruned ? get_strings(*pruned, "warnings") : std::vector<std::string>()) {
    log::warning("stage-out to " + printable(request_.destination()) + ": " + rest);
    warnings.emplace_back(std::move(rest));
  }
  sent["warnings"] = std::move(warnings);
  sent["removed"] = std::move(removed);
}

asio::awaitable<Result<json::object>> Transfer::delete_older(Keep keep) {
  const std::string folder = std::filesystem::path(request_.path).parent_path();
  auto in_use = context_.in_use(request_.volume, folder);
  for (unsigned tries = 1; !in_use && tries < context_.timings.tries; ++tries) {
    co_await wait(context_.timings.retry);
    in_use = context_.in_use(request_.volume, folder);
  }
  if (!in_use) co_return fail(in_use.error());
  const auto place = context_.find_volume(request_.volume);
  if (!place) co_return fail(place.error());
  json::object request{{"path", request_.path}, {"uid", request_.asker.uid},
                       {"keep", keep.count},    {"keep_every", keep.every},
                       {"rule", request_.rule}, {"spared", json::value_from(*in_use)}};
  auto call = place->call(request_.volume, "prune-output", std::move(request), context_.timings.prune);
  call.on_progress = [this](const json::object& progress) { note_progress(*attempt_, progress); };
  call.on_start = [this](pid_t pid) {
    if (!context_.must_yield()) return;
    if (const auto set = workers::set_priority(pid, workers::Priority::Idle); !set)
      log::survived(set.error());
  };
  const workers::Cancellation cancellation = attempt_->cancellation;
  auto pruned = co_await context_.runner.run(std::move(call), cancellation);
  co_return pruned;
}

void Transfer::config_changed() {
  if (attempt_ && attempt_->is_over && keep_ != keep_of(request_, context_.config()))
    attempt_->cancellation.cancel();
}

}  // namespace spark::outputs
