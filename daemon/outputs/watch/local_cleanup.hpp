// Deletes local checkpoints of an output that need not stay on this host.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "daemon/outputs/context.hpp"
#include "daemon/outputs/stage_outs.hpp"
#include "daemon/outputs/watch/checkpoint_plan.hpp"

namespace spark::outputs {

// Proof that a local checkpoint may be deleted: a moment ago, the copy that this depends on was whole on the
// volume. Only prove_deletions makes one.
class DeletionProof {
 public:
  const std::string& name() const { return name_; }
  std::int64_t written() const { return written_; }
  const std::string& reason() const { return reason_; }

 private:
  friend std::vector<DeletionProof> prove_deletions(const config::Output& output,
                                                    const std::vector<Surplus>& surplus,
                                                    const json::object& listed);
  DeletionProof(const Surplus& surplus, std::string reason)
      : name_(surplus.name), written_(surplus.written), reason_(std::move(reason)) {}
  std::string name_;
  std::int64_t written_;  // the state of it that may be deleted
  std::string reason_;    // the end of a sentence
};
// `listed`: the answer of the worker verb "list-published", with "check".
std::vector<DeletionProof> prove_deletions(const config::Output& output, const std::vector<Surplus>& surplus,
                                           const json::object& listed);

class LocalCleanup {
 public:
  // All outlive it.
  LocalCleanup(const Context& context, const StageOuts& stage_outs, const config::Output& output)
      : context_(context), stage_outs_(stage_outs), output_(output) {}

  // Proves, deletes and logs. Those that could not be deleted are not tried again for a while.
  asio::awaitable<void> run(std::vector<Surplus> surplus, uid_t owner);
  // Deletes nothing more.
  void stop() { is_stopped_ = true; }
  // Why the last deletion failed, here or on the volume; empty means that it did not.
  const std::string& trouble() const { return trouble_.empty() ? trouble_there_ : trouble_; }
  // Of the deletions on the volume after a sending.
  void note_there(std::string trouble) { trouble_there_ = std::move(trouble); }

 private:
  asio::awaitable<Result<std::vector<DeletionProof>>> prove(std::vector<Surplus> surplus, uid_t owner);
  // False if some stay, as a job has them open or has saved them again.
  asio::awaitable<Result<bool>> remove(std::vector<DeletionProof> proofs);

  const Context& context_;
  const StageOuts& stage_outs_;
  const config::Output& output_;
  std::string trouble_, trouble_there_;
  std::vector<std::string> failed_;  // the names that could not be deleted
  SteadyTime next_{};
  bool is_stopped_ = false;
};

}  // namespace spark::outputs
