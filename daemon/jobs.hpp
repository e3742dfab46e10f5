// A long-running operation as a resource: its subject, its progress, its result. Any number of callers may
// wait for its next change.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/event.hpp"

namespace spark {

namespace asio = boost::asio;

inline const std::string kStage = "stage",
                         kPrefetch = "prefetch";  // verbs of jobs that stage a dataset

// The requester of a job.
struct Asker {
  std::string holder = "spark-staged";  // for messages: "pid 12 (python), uid 1000", "slurm job 7 (alice)"
  uid_t uid = 0;
  std::string scheduler_job{};  // if root requested it for a scheduler's job: "slurm:7"; otherwise empty
  std::string user{};           // of that job; empty if unknown
};

// The operation and its objects.
struct JobSubject {
  std::string verb;
  std::vector<std::string> names;  // datasets or volumes
  Asker asker{};
};

class Job {
 public:
  Job(asio::any_io_executor executor, std::uint64_t id, std::string key, JobSubject subject,
      const Clock& clock);

  std::uint64_t id() const { return id_; }
  // The id with the daemon's mark: after a restart another job may have the same id, never the same key.
  const std::string& key() const { return key_; }
  const std::string& verb() const { return subject_.verb; }
  bool stages() const { return verb() == kStage || verb() == kPrefetch; }
  const std::vector<std::string>& subjects() const { return subject_.names; }
  const Asker& asker() const { return subject_.asker; }
  bool is_running() const { return !ended_; }
  std::size_t outcome_size() const { return outcome_size_; }  // about its bytes in memory
  const std::optional<json::object>& progress() const { return progress_; }
  // Results and errors name files in folders that not every member of the group may list: the outcome alone
  // is for all. The rest is for the asker, and for those who have asked for the same since.
  enum class Told { All, Outcome };
  void add_requester(uid_t uid) { requesters_.insert(uid); }
  bool has_requester(uid_t uid) const { return requesters_.contains(uid); }
  json::object to_json(Told told = Told::All) const;
  // {"event": "done", "result"} or {"event": "failed", "error"}, once it has ended.
  json::object final_event(Told told = Told::All) const;
  // The same as a line. Clients that read it at the same time share one text.
  std::shared_ptr<const std::string> final_line(Told told) const;

  void set_progress(json::object progress);
  // What a client adds to its request when it repeats it, after a restart of the daemon.
  void note_accepted(json::object accepted) { accepted_ = std::move(accepted); }
  void finish(Result<json::object> ended);

  // Called by cancel(); empty for work that can't be cancelled. Dropped when the job ends.
  std::function<void()> on_cancel;
  Result<> cancel();

  // Returns at the next set_progress or finish.
  asio::awaitable<void> next_change();

 private:
  std::uint64_t id_;
  std::string key_;
  JobSubject subject_;
  std::set<uid_t> requesters_;
  const Clock& clock_;
  WallTime started_;
  std::optional<WallTime> ended_at_;
  std::optional<json::object> progress_;
  std::optional<json::object> accepted_;
  std::optional<Result<json::object>> ended_;
  std::size_t outcome_size_ = 0;
  Event changed_;
  mutable std::map<Told, std::weak_ptr<const std::string>> final_lines_;

  json::object error_to_json(Told told) const;
};

// The running jobs, and of each user the last hundred ended ones, or fewer with large results.
class Jobs {
 public:
  Jobs(asio::any_io_executor executor, const Clock& clock);

  std::shared_ptr<Job> create(JobSubject subject);
  std::shared_ptr<Job> find(std::string_view id_or_key) const;
  // Of that user's running jobs, at least one each. A long name counts once more for each 100 bytes.
  std::size_t running_subjects(uid_t uid) const;
  const std::deque<std::shared_ptr<Job>>& all() const { return jobs_; }

 private:
  void forget_ended();

  asio::any_io_executor executor_;
  const Clock& clock_;
  std::string mark_;  // of this daemon
  std::uint64_t next_id_ = 1;
  std::deque<std::shared_ptr<Job>> jobs_;
};

}  // namespace spark
