#include "daemon/outputs/watch/local_cleanup.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {
namespace {

constexpr Duration kPause{600'000}, kShortPause{30'000};  // after a failure; while one is open

}  // namespace

std::vector<DeletionProof> prove_deletions(const config::Output& output, const std::vector<Surplus>& surplus,
                                           const json::object& listed) {
  const auto copies = staging::rows_from_json<PublishedCheckpoint>(listed, "copies");
  const auto same = get_strings(listed, "same");
  std::vector<DeletionProof> proofs;
  for (const Surplus& one : surplus) {
    const bool is_it = one.copy.name == one.name;
    const auto copy = std::ranges::find(copies, one.copy);
    if (copy == copies.end() || copy->written == 0) continue;  // not whole
    const bool is_same =
        output.nodes > 1 ? std::ranges::find(same, one.name) != same.end() : copy->written == one.written;
    if (is_it && !is_same) continue;
    const std::string there = printable(output.volume + ":" + path_on_volume(output, one.copy.name));
    proofs.push_back(DeletionProof(one, (is_it ? "it is whole at " : "a later step is whole at ") + there));
  }
  return proofs;
}

asio::awaitable<void> LocalCleanup::run(std::vector<Surplus> surplus, uid_t owner) {
  if (surplus.empty()) trouble_.clear();
  std::vector<std::string> names;
  for (const Surplus& one : surplus) names.push_back(one.name);
  const bool has_failed = names == failed_ && context_.clock.steady() < next_;
  if (surplus.empty() || has_failed || !stage_outs_.sources()) co_return;
  auto proofs = co_await prove(std::move(surplus), owner);
  Result<bool> removed = true;
  if (is_stopped_) co_return;  // the configuration has changed meanwhile
  if (!proofs) {
    removed = fail(proofs.error());
  } else if (!proofs->empty()) {
    removed = co_await remove(std::move(*proofs));
  } else {
    removed = fail(Errc::Mismatch,
                   "checkpoints beyond keep_local stay here, since the copies on " +
                       printable(output_.volume + ":" + output_.to) + " are not whole, or of another save",
                   "`spark-stage verify VOLUME:PATH` names what is missing there");
  }
  failed_ = removed && *removed ? std::vector<std::string>() : std::move(names);
  next_ = context_.clock.steady() + (removed ? kShortPause : kPause);
  if (!removed && trouble_ != removed.error().message())
    log::warning("output " + output_.name + ": " + removed.error().message());
  trouble_ = removed ? "" : removed.error().message();
}

asio::awaitable<Result<std::vector<DeletionProof>>> LocalCleanup::prove(std::vector<Surplus> surplus,
                                                                        uid_t owner) {
  const auto place = context_.find_readable(output_.volume);
  if (!place) co_return fail(place.error());
  json::array check;
  for (const Surplus& one : surplus) check.emplace_back(one.copy.name);
  json::object request{
      {"path", output_.to}, {"rule", rule_of(output_)}, {"uid", owner}, {"check", std::move(check)}};
  if (output_.nodes > 1) request["local"] = output_.path.native();
  auto call = place->call(output_.volume, "list-published", std::move(request), context_.timings.scan);
  const auto listed = co_await context_.runner.run(std::move(call));
  if (!listed) co_return fail(listed.error());
  co_return prove_deletions(output_, surplus, *listed);
}

asio::awaitable<Result<bool>> LocalCleanup::remove(std::vector<DeletionProof> proofs) {
  auto sources = stage_outs_.sources();
  if (!sources) co_return true;
  Changes changes;
  for (const DeletionProof& proof : proofs) changes[proof.name()] = proof.written();
  workers::Call call;
  call.verb = "tidy-output";
  call.subject = "output " + output_.name;
  call.deadline = context_.timings.scan;
  call.request = {{"path", output_.path.native()},
                  {"remove", staging::states_to_json(changes)},
                  {"sources", json::value_from(std::move(*sources))}};
  // At once: its end may never be told.
  call.on_progress = [this, proofs](const json::object& progress) {
    const std::string name = get_text(progress, "deletes");
    const auto proof = std::ranges::find(proofs, name, &DeletionProof::name);
    if (proof == proofs.end()) return;
    log::info("output " + output_.name + ": deleting " + printable((output_.path / name).native()) + ": " +
              proof->reason());
  };
  const auto tidied = co_await context_.runner.run(std::move(call));
  const std::string doing = "deleting checkpoints beyond keep_local in " + printable(output_.path.native()) +
                            " as the owner of the folder";
  if (!tidied) co_return fail_with(tidied.error(), doing);
  const auto removed = get_strings(*tidied, "removed");
  const bool are_all = std::ranges::all_of(proofs, [&](const DeletionProof& proof) {
    return std::ranges::find(removed, proof.name()) != removed.end();
  });
  const json::object* failed = get_object(*tidied, "failed");
  if (failed != nullptr) co_return fail_with(error_from_json(*failed), doing);
  co_return are_all;
}

}  // namespace spark::outputs
