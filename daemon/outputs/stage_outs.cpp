#include "daemon/outputs/stage_outs.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::outputs {
namespace {

tl::unexpected<Error> is_taken(const StageOutRequest& request, const Transfer& other) {
  const std::string job = std::to_string(other.job()->id());
  return fail(Errc::Unavailable,
              request.doing() + ": job " + job + " sends " + printable(other.request().source) + " there",
              "`spark-stage wait --job " + job + "` ends when that is done");
}

Error outdated(const StageOutRequest& earlier, const StageOutRequest& later) {
  const bool is_changed = earlier.written != later.written;
  return {is_changed ? Errc::Mismatch : Errc::Cancelled,
          earlier.doing() + ": " +
              (is_changed ? "it changed since that was accepted: nothing was published"
                          : "another attempt of the job sends it"),
          "the later request sends it"};
}

// An earlier version's record of a checkpoint has no state: the job may have saved half of the next one
// since. If the output has a rule, it sends the checkpoint once it is complete.
bool is_left_to_output(const StageOutRequest& request, const config::Config& config) {
  if (request.rule.empty() || request.written) return false;
  return std::ranges::any_of(config.outputs, [&](const auto& one) {
    return one.second.volume == request.volume && one.second.to == request.folder() &&
           one.second.complete != config::Complete::OnRequest;
  });
}

}  // namespace

StageOuts::StageOuts(Context context, Jobs& jobs)
    : context_(std::move(context)),
      jobs_(jobs),
      store_(context_),
      turns_(context_.executor),
      workers_(context_.executor, context_.runner) {}

asio::awaitable<void> StageOuts::start() {
  auto recorded = co_await store_.load();
  if (!recorded) log::survived(recorded.error());
  for (std::size_t i = 0; recorded && i < recorded->size(); ++i) {
    StageOutRequest& request = (*recorded)[i];
    const TransferPtr other = find(request);
    // It was requested again meanwhile. Which of two states of a source is there, the copy itself finds out.
    const bool is_left = is_left_to_output(request, context_.config());
    if (is_left || (other && !request.is_later_than(other->request()))) {
      if (is_left)
        log::info(request.doing() +
                  " was accepted by an earlier version: the output sends it once it is complete");
      std::string id = std::move(request.id);
      co_await store_.forget(std::move(id));
      continue;
    }
    log::info("stage-out of " + printable(request.source) + " to " + printable(request.destination()) +
              " is resumed");
    begin(add(std::move(request)));
  }
  has_read_records_ = recorded.has_value();
}

// After a kill of the daemon there may be two, of an earlier state and a later one.
TransferPtr StageOuts::find(const StageOutRequest& request) const {
  const auto likeness = [&](const StageOutRequest& other) {
    return other.is_same(request) ? 2 : other.written == request.written ? 1 : 0;
  };
  TransferPtr found;
  for (const TransferPtr& one : transfers_) {
    // That of another user reserves no name: who may write there is not known yet.
    const bool is_there = one->request().volume == request.volume && one->request().path == request.path &&
                          one->request().asker.uid == request.asker.uid && !one->is_cancelled();
    if (is_there && (!found || likeness(one->request()) > likeness(found->request()))) found = one;
  }
  return found;
}

asio::awaitable<Result<std::shared_ptr<Job>>> StageOuts::send(StageOutRequest request) {
  const auto place = context_.find_volume(request.volume);
  if (!place && place.error().kind != Errc::Unavailable) co_return fail_with(place.error(), request.doing());
  while (const TransferPtr other = find(request)) {
    if (!request.written && request.source != other->request().source) co_return is_taken(request, *other);
    if (!request.written || (request.is_repeated && !other->request().written)) {
      const auto durable = co_await other->until_durable();  // so that its state is known
      if (!durable) co_return durable.take_error();
      if (request.is_repeated) continue;
      StageOutRequest looked_at = request;
      auto state = co_await flushes_.look_again(std::move(looked_at));
      if (!state) co_return state.take_error();
      request.written = *state;
      request.is_flushed = true;
      continue;
    }
    // As from a shell, which has not the job's environment.
    if (request.attempt.empty() && request.written == other->request().written)
      request.attempt = other->request().attempt;
    if (other->request().is_same(request)) {
      StageOutRequest joined = other->request();
      joined.waits |= request.waits;
      other->amend(std::move(joined));
      const auto durable = co_await other->until_durable();
      if (!durable) co_return durable.take_error();
      co_return other->job();
    }
    if (request.is_outdated_by(other->request())) co_return fail(outdated(request, other->request()));
    if (request.is_repeated || !request.is_later_than(other->request())) co_return is_taken(request, *other);
    log::info("job " + std::to_string(other->job()->id()) +
              " ends: " + outdated(other->request(), request).what);
    other->cancel(outdated(other->request(), request));
  }
  auto id = fresh_uuid(SystemRoot{});
  if (!id) co_return id.take_error();
  request.id = std::move(*id);
  // Before it is recorded, so that no other request takes the destination.
  const TransferPtr transfer = add(std::move(request));
  auto saved = co_await make_durable(transfer);
  if (saved) {
    begin(transfer);
    co_return transfer->job();
  }
  std::erase(transfers_, transfer);
  transfer->job()->finish(fail(Error(saved.error())));
  transfer->note_durable(saved);
  co_return saved.take_error();
}

// The source first: the record is what a restarted daemon trusts. A repeated request stays one for what was
// accepted. If the source has changed since, the copy says so, unless that state is on the volume already.
asio::awaitable<Result<>> StageOuts::make_durable(TransferPtr transfer) {
  if (!transfer->request().is_flushed || !transfer->request().written) {
    StageOutRequest request = transfer->request();
    const auto state = co_await flushes_.flush(std::move(request), transfer->job());
    if (!state) co_return fail(state.error());
    request = transfer->request();
    if (!request.is_repeated) request.written = *state;
    transfer->amend(std::move(request));
  }
  StageOutRequest record = transfer->request();
  auto saved = co_await store_.save(std::move(record));
  co_return saved;
}

TransferPtr StageOuts::add(StageOutRequest request) {
  auto job = jobs_.create({"stage-out", {request.destination()}, request.asker});
  auto transfer = std::make_shared<Transfer>(context_, turns_, std::move(request), job);
  transfers_.push_back(transfer);
  // The job owns this function, and the transfer owns the job.
  job->on_cancel = [weak = std::weak_ptr<Transfer>(transfer)] {
    if (const TransferPtr one = weak.lock()) one->cancel();
  };
  return transfer;
}

// Called after it is recorded, so that its end finds the record.
void StageOuts::begin(const TransferPtr& transfer) {
  if (transfer->request().written) transfer->note_durable({});
  launch(context_.executor, "stage-out to " + transfer->request().destination(), run(transfer));
}

// An earlier version's record of a user's request has no state: that of now is the best there is. Tried
// again, since the record is forgotten at the end.
asio::awaitable<Result<>> StageOuts::learn_state(TransferPtr transfer) {
  log::warning(transfer->request().doing() +
               ": an earlier version accepted this and recorded no state of the source; if it has changed "
               "since, its current state is sent");
  for (unsigned tries = 1;; ++tries) {
    StageOutRequest request = transfer->request();
    const auto state = co_await flushes_.flush(std::move(request), transfer->job());
    if (state) {
      request = transfer->request();
      request.written = *state;
      transfer->amend(request);
      const auto saved = co_await store_.save(std::move(request));
      if (!saved) log::survived(saved.error());
      co_return Result<>{};
    }
    if (tries >= context_.timings.tries || transfer->is_cancelled()) co_return fail(state.error());
    log::survived(state.error());
    co_await transfer->wait(context_.timings.retry * tries);
  }
}

asio::awaitable<Outcome> StageOuts::send_once_known(TransferPtr transfer) {
  if (!transfer->request().written) {
    auto known = co_await learn_state(transfer);
    if (!known) std::erase(transfers_, transfer);
    transfer->note_durable(known);
    if (!known && !transfer->is_cancelled()) co_return known.take_error();
  }
  auto sent = co_await transfer->run();
  co_return sent;
}

// Its volume is free for others while it waits for other hosts.
asio::awaitable<void> StageOuts::run(TransferPtr transfer) {
  auto sent = co_await send_once_known(transfer);
  while (sent && lacks_shards(*sent) && transfer->request().waits && !transfer->is_cancelled()) {
    co_await transfer->wait_for_shards(*sent);
    sent = co_await transfer->run();
  }
  std::erase(transfers_, transfer);  // first, so that no later request joins it
  std::string id = transfer->request().id;
  co_await store_.forget(std::move(id));
  if (!transfer->request().rule.empty()) {  // of an output: a user's source is never held
    HoldingFolder holding{std::filesystem::path(transfer->request().source).parent_path(), SIZE_MAX};
    co_await held_.release(std::move(holding));
  }
  count(sent);
  if (sent) {
    sent->insert_or_assign("name", printable(transfer->request().destination()));
    const std::string end = lacks_shards(*sent) ? ": " + missing_shards(*sent, transfer->request().nodes)
                                                : std::string(" is complete");
    if (!lacks_shards(*sent) || get_string(*sent, "served_from") != "unchanged") {
      log::info("stage-out of " + printable(transfer->request().source) + " to " +
                printable(transfer->request().destination()) + end);
    }
  } else {
    log::warning(sent.error().message());
  }
  transfer->job()->finish(std::move(sent));
}

std::size_t StageOuts::transfers_of(uid_t user) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      transfers_, [&](const TransferPtr& one) { return one->request().asker.uid == user; }));
}

json::array StageOuts::list() const {
  json::array rows;
  for (const TransferPtr& transfer : transfers_) {
    json::object row = transfer->progress();
    for (const char* own : {"published", "shard_sent"}) row.erase(own);  // for the output that sends it
    row["source"] = printable(transfer->request().source);
    row["jobs"] = json::array{std::to_string(transfer->job()->id())};
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<std::vector<std::string>> StageOuts::sources() const {
  if (!has_read_records_) return std::nullopt;
  std::vector<std::string> sources;
  for (const TransferPtr& transfer : transfers_) sources.push_back(transfer->request().source);
  return sources;
}

Backlog StageOuts::backlog() const {
  Backlog backlog;
  backlog.outputs = transfers_.size();
  for (const TransferPtr& transfer : transfers_) {
    const std::int64_t left = get_int(transfer->progress(), "bytes_total").value_or(0) -
                              get_int(transfer->progress(), "bytes_done").value_or(0);
    backlog.bytes += static_cast<Bytes>(std::max<std::int64_t>(0, left));
  }
  return backlog;
}

void StageOuts::count(const Outcome& sent) {
  if (!sent) {
    ++(sent.error().kind == Errc::Cancelled ? totals_.cancelled : totals_.failed);
  } else if (lacks_shards(*sent)) {
    // Counted when it is published.
  } else if (get_string(*sent, "served_from") == "unchanged") {
    ++totals_.unchanged;
  } else {
    ++totals_.sent;
    totals_.sent_bytes += get_count(*sent, "bytes");
  }
}

Result<std::shared_ptr<Job>> StageOuts::verify(std::string volume, std::string path, Asker asker) {
  const std::string name = volume + ":" + path;
  const auto place = context_.find_readable(volume);
  if (!place) return fail_with(place.error(), "verifying " + printable(name));
  const uid_t uid = asker.uid;
  auto job = jobs_.create({"verify", {name}, std::move(asker)});
  workers::Cancellation cancellation;
  workers_.make_cancellable(*job, cancellation);
  workers::Call call = place->call(volume, "verify-output", {{"path", path}});
  if (uid != 0) call.request["uid"] = uid;
  call.on_progress = [job, shown = printable(name)](json::object progress) {
    progress["dataset"] = shown;
    job->set_progress(std::move(progress));
  };
  launch(context_.executor, "verify " + name, run_verify(job, std::move(call), cancellation));
  return job;
}

asio::awaitable<void> StageOuts::run_verify(std::shared_ptr<Job> job, workers::Call call,
                                            workers::Cancellation cancellation) {
  auto verified = co_await workers_.run(job, std::move(call), cancellation);
  if (verified) verified->insert_or_assign("dataset", printable(job->subjects().front()));
  if (!verified && verified.error().kind == Errc::Mismatch) log::error(verified.error().message());
  job->finish(std::move(verified));
}

}  // namespace spark::outputs
