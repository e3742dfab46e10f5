// All copies in progress to volumes: each request is a job, is recorded before it is answered, and survives a
// restart of the daemon and of the host.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/jobs.hpp"
#include "daemon/outputs/context.hpp"
#include "daemon/outputs/held_sources.hpp"
#include "daemon/outputs/source_flushes.hpp"
#include "daemon/outputs/store.hpp"
#include "daemon/outputs/totals.hpp"
#include "daemon/outputs/transfer.hpp"
#include "daemon/workers/job_turns.hpp"

namespace spark::outputs {

class StageOuts {
 public:
  StageOuts(Context context, Jobs& jobs);

  // Resumes recorded requests.
  asio::awaitable<void> start();

  // Durable when it returns: the source, and the request. A request for a copy in progress joins its job.
  // One for a later state of its source, or another attempt of the user's job, takes its place, unless it is
  // a repeated one: Mismatch, or Cancelled. NotFound, Refused: see find_volume; Unavailable if a different
  // source is being sent to that destination.
  asio::awaitable<Result<std::shared_ptr<Job>>> send(StageOutRequest request);
  // Compares the copy published at VOLUME:PATH with its manifest.
  Result<std::shared_ptr<Job>> verify(std::string volume, std::string path, Asker asker);

  const Context& context() const { return context_; }
  HeldSources& held() { return held_; }
  const Totals& totals() const { return totals_; }
  Backlog backlog() const;
  json::array list() const;  // "stage_outs" of `status --json`
  // Of the copies that have not ended, which need them until then. None until the records of an earlier
  // daemon's copies have been read.
  std::optional<std::vector<std::string>> sources() const;
  const std::vector<TransferPtr>& transfers() const { return transfers_; }  // without those that have ended
  std::size_t transfers_of(uid_t user) const;

 private:
  TransferPtr find(const StageOutRequest& request) const;
  TransferPtr add(StageOutRequest request);
  asio::awaitable<Result<>> make_durable(TransferPtr transfer);
  asio::awaitable<Result<>> learn_state(TransferPtr transfer);
  asio::awaitable<Outcome> send_once_known(TransferPtr transfer);
  void begin(const TransferPtr& transfer);
  asio::awaitable<void> run(TransferPtr transfer);
  asio::awaitable<void> run_verify(std::shared_ptr<Job> job, workers::Call call,
                                   workers::Cancellation cancellation);
  void count(const Outcome& sent);

  Context context_;
  Jobs& jobs_;
  Store store_;
  workers::UserTurns turns_;
  workers::JobTurns workers_;  // flushes and verifications
  SourceFlushes flushes_{context_, turns_, workers_};
  std::vector<TransferPtr> transfers_;  // in the order of their requests
  Totals totals_;
  bool has_read_records_ = false;
  HeldSources held_{context_, [this] { return sources(); }};
};

}  // namespace spark::outputs
