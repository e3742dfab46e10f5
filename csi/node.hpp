// Mounts and unmounts volumes for the pods that kubelet starts and ends on this node.
#pragma once

#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "csi/daemon.hpp"
#include "csi/mounts.hpp"
#include "csi/publication.hpp"
#include "csi/status.hpp"
#include "csi/turns.hpp"

namespace spark::csi {

// kubelet waits two minutes for a call (a constant in its source), then repeats it after a pause that doubles
// each time. Holding a call nearly that long keeps the pauses short, and shows its answer in the pod's
// events.
inline constexpr Duration kKubeletWaits{120'000};

// A call received through gRPC.
struct Call {
  SteadyTime begin, end;               // arrival, and the time until which the caller waits
  std::function<bool()> is_abandoned;  // true if the caller has gone or the driver is stopping

  // The time to answer by: one twelfth of the time before the end, 10 s of kubelet's two minutes.
  SteadyTime answer_by() const;
};

class Node {
 public:
  // `say` logs a sentence. Tests may replace `sleep`.
  Node(Daemon& daemon, Mounter& mounter, const Clock& clock, std::function<void(Duration)> sleep,
       std::function<void(const std::string&)> say)
      : daemon_(daemon), mounter_(mounter), clock_(clock), sleep_(std::move(sleep)), say_(std::move(say)) {}

  // Stages the dataset or joins a staging in progress, and mounts its copy for the pod; or mounts the folder
  // of an output, writable. Aborted if staging takes longer than the caller waits; the staging continues.
  Status publish(const PublishRequest& request, const Call& call);
  // Unmounts the volume, ends its lease and a staging in progress, and has complete checkpoints of an output
  // sent. If the daemon does not answer, reconcile() ends the lease later.
  Status unpublish(const std::string& volume, const std::string& target, const Call& call);
  // NotFound: no volume is mounted at that path.
  Result<Usage> usage(const std::string& volume, const std::string& path);
  // Ends the leases of volumes that no longer belong to any pod.
  Result<> reconcile(const std::filesystem::path& kubelet);

 private:
  Status publish_dataset(const Publication& publication, const Call& call, const Turns::Turn& turn,
                         Place place);
  Status publish_output(const Publication& publication, Place place);
  Status claim_mounted(Publication publication, const Call& call, const Turns::Turn& turn);
  Result<Copy> stage(const Publication& publication, const Call& call, const Turns::Turn& turn);
  void release(const std::string& volume);
  // The output mounted at a target; empty if there is none or the daemon is unavailable.
  std::string output_at(const std::filesystem::path& target);

  Daemon& daemon_;
  Mounter& mounter_;
  const Clock& clock_;
  std::function<void(Duration)> sleep_;
  std::function<void(const std::string&)> say_;
  Turns turns_;
};

}  // namespace spark::csi
