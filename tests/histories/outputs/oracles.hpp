// The promises of an output, compared with the truth after each step of a worker, each answer and at the end.
#pragma once

#include <string>

#include "daemon/workers/runner.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

class Oracles {
 public:
  explicit Oracles(Scene& scene) : scene_(scene) {}

  // The folders of the job and of the volume, before a worker changes them.
  struct Before {
    Listing here, there;
    std::string link_here;  // target of the local `latest`
  };
  Before before(const Machine& machine) const;
  void after(const Machine& machine, const workers::Call& call, const Before& before,
             const Result<json::object>& answer);

  // The answer of `spark-stage latest`. `before`: what was there when it was asked. What is published while
  // it looks need not be in the answer, and a save to the same name may begin right after it has looked.
  void check_latest(const Machine& machine, const Result<json::object>& answer, const Before& before);
  // What the daemon shows of the output, at any moment.
  void check_facts(const Machine& machine);
  // Everything is well for some time: it is sent, `latest` names it, and nothing else is said. Otherwise why
  // not.
  std::optional<Violation> why_not_settled(const Machine& machine) const;

  // The highest step that is complete here, of those that its rule can tell and that the daemon had time to
  // see.
  const std::pair<const std::string, Save>* highest_here(const Machine& machine, Duration quiet) const;

 private:
  void check_deleted_here(const Machine& machine, const Before& before, const Listing& here,
                          const Listing& there);
  bool seems_to_stand(const std::string& name, const Save& save, const Listing& here) const;
  // Each deletion has its reason in the journal, also if its worker is killed. `what`: the end of the path.
  void check_logged(const Listing& before, const Listing& now, const std::string& folder, char end);
  void check_own_link(const Machine& machine, const Before& before);
  void check_published(const Machine& machine, const workers::Call& call, const Before& before,
                       const Listing& there);
  void check_deleted_there(const Before& before, const Listing& there);
  void check_pointer(const Listing& there, bool is_moved);
  std::string pointer_there() const;
  std::optional<Violation> unsent_in_the_end(const Machine& machine) const;
  std::optional<Violation> why_not_all_sent(const Machine& machine, const Listing& there) const;
  bool is_higher_here(const Machine& machine, const std::string& name, const Save& save) const;
  // In a word, what another checkpoint may have been taken for the newest by, so that each defect has its own
  // oracles. Of the world's truth alone.
  std::string cause_of(const std::string& name) const;
  std::string cause_between(const std::string& newest, const std::string& name) const;
  // Whether NeMo's file beside it says, or said, that it is not finished.
  bool was_marked_unfinished(const std::string& name) const;
  bool is_remnant(const Machine& machine, const std::string& name) const;
  // Whether it says that it can't know whether this checkpoint is complete, since a clock was set. Of one of
  // several hosts, that of a missing shard says so.
  bool is_told_of_clock(const Machine& machine, const std::string& name) const;
  // Whether `latest` says instead of `best` that a checkpoint may be complete: a clock was set, and the times
  // of files tell no order. One that was saved while no daemon ran may then be the rest of a save that a
  // power cut ended, as far as a daemon can know that starts later.
  bool is_told_instead(const Machine& machine, const json::object& answer, const std::string& best) const;

  Scene& scene_;
};

}  // namespace spark::histories
