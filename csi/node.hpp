// What a node does for the pods that kubelet starts and ends on it.
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

// kubelet waits two minutes for a call, a constant of its source, and then repeats it after a pause that
// doubles each time. A call that is held nearly as long keeps these pauses short, and its answer stands in
// the pod's events.
inline constexpr Duration kKubeletWaits{120'000};

// A call as gRPC has it.
struct Call {
  SteadyTime begin, end;               // when it came, and until when its caller waits
  std::function<bool()> is_abandoned;  // its caller has gone, or the driver stops

  // From then on an answer is due: a twelfth of the time early, 10 s of kubelet's two minutes.
  SteadyTime answer_by() const;
};

class Node {
 public:
  // `say` logs a sentence. `sleep` may be a test's.
  Node(Daemon& daemon, Mounter& mounter, const Clock& clock, std::function<void(Duration)> sleep,
       std::function<void(const std::string&)> say)
      : daemon_(daemon), mounter_(mounter), clock_(clock), sleep_(std::move(sleep)), say_(std::move(say)) {}

  // Stages the dataset or joins a staging under way, and mounts its copy for the pod; or mounts the folder of
  // an output, writable. Aborted: staging takes longer than the caller waits; it goes on.
  Status publish(const PublishRequest& request, const Call& call);
  // Ends the mount, and the lease with the staging that is under way; what is complete in an output is sent.
  // A lease that the daemon can't be told of now is ended by reconcile().
  Status unpublish(const std::string& volume, const std::string& target, const Call& call);
  // NotFound: no copy is mounted at that path.
  Result<Usage> usage(const std::string& volume, const std::string& path);
  // Ends the leases of volumes that no pod has any more.
  Result<> reconcile(const std::filesystem::path& kubelet);

 private:
  Status publish_dataset(const Publication& publication, const Call& call, const Turns::Turn& turn,
                         Place place);
  Status publish_output(const Publication& publication, Place place);
  Status check_mounted(const Publication& publication);
  // A call that waits for a staging.
  struct Wait {
    const Call& call;
    const Turns::Turn& turn;
    std::string words;  // how far the staging is
    SteadyTime heard;   // when the daemon answered last
  };
  Result<std::string> stage(const Publication& publication, const Call& call, const Turns::Turn& turn);
  Result<std::string> follow(const Publication& publication, Wait& wait);
  Result<> check_time(const Wait& wait) const;
  void release(const std::string& volume);
  // The output that is mounted at a target; empty: none, or the daemon is away.
  std::string output_at(const std::filesystem::path& target);
  void send_output(const std::string& output);

  Daemon& daemon_;
  Mounter& mounter_;
  const Clock& clock_;
  std::function<void(Duration)> sleep_;
  std::function<void(const std::string&)> say_;
  Turns turns_;
};

}  // namespace spark::csi
