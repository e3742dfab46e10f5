// One volume: brings it up, watches it, brings it up again, for ever. All thinking, no touching: see
// actions.hpp.
//
//   waiting ──target reached──▶ connecting ──namespace there──▶ mounting ──▶ ready ◀──link back── stalled
//      ▲                                                                   │  └──link down──────▶    │
//      └── any step failed: reason, back-off                               └──device gone──▶ lost ◀──┘
//   refused: a step found something that only a person can decide; looked at again at a slow pace.   lost ──▶
//   recovering
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "daemon/backoff.hpp"
#include "daemon/config/model.hpp"
#include "daemon/volumes/actions.hpp"
#include "daemon/volumes/place.hpp"
#include "daemon/volumes/status.hpp"

namespace spark::volumes {

// Every wait of the state machine, in one place; unit tests shrink them.
struct Pace {
  Duration watch{1000};              // between two looks at a mounted volume
  Duration watch_closely{300};       // the same while it is not ready: its return is noticed at once
  Duration probe{10'000};            // between two reads of a ready volume's superblock
  Duration mounted_state{10'000};    // between two questions to a ready volume's file system
  Duration io_silence{5'000};        // no I/O has ended for so long: a device that owes an answer is silent
  Duration smart{60'000};            // between two questions about the target's drives
  Duration smart_refused{3600'000};  // the same of a target that did not answer one
  Duration probe_reader{2'000};      // the same where another host may publish
  Duration first_retry{1000}, longest_retry{5'000};
  Duration first_leave{2'000}, longest_leave{30'000};  // between attempts to leave an outdated mount in use
  Duration settled{30'000};         // ready for so long: the next loss is a new one, and retried at once
  Duration refused_retry{30'000};   // until a refused volume is looked at again
  Duration namespace_wait{20'000};  // for a namespace to appear after the connect
  Duration namespace_poll{200};
  Duration namespace_rescan{2'000};  // until the kernel is asked to look for it again
  Duration fail_over{2'000};         // beyond two keep-alives: until I/O left a dead path for another
  Duration link_doubt{1'000};        // good reads over a link that was down, until it is believed
  Duration name_doubt{10'000};       // a path is down for so long: its target's name is looked up again
};

class Volume : public std::enable_shared_from_this<Volume> {
 public:
  using OnChange = std::function<void(const Volume&, State before)>;

  // `target` is empty for NFS.
  Volume(asio::any_io_executor executor, config::Volume settings, std::optional<config::Target> target,
         std::unique_ptr<VolumeActions> actions, const Clock& clock, Pace pace, OnChange on_change);

  // Runs until stop(). A mounted volume stays mounted after it.
  void start();
  void stop();

  // intent.cpp: as an operator wants it from now on, also after a restart. Durable before anything is done.
  // `by`: who asks. What can't be taken down stays up.
  asio::awaitable<Result<>> keep_up();
  asio::awaitable<Result<>> keep_down(std::string by);
  // Wants it up (default), or unmounted and disconnected. `ask_down` ends when it is down or with why it
  // can't be; `ask_take`: fence.cpp.
  void ask_up();
  // What its failed attempts may have waited for has come about, as far as is known: the next one is due.
  void try_now();
  // A namespace has appeared. If it is the one that was missing here, the next attempt is due.
  void namespace_added();
  // One of its controllers has changed: look at it.
  void look_now(const std::string& controller);
  asio::awaitable<Result<std::string>> ask_take();
  // publish.cpp: an exclusive volume that is ready becomes read-only, and its state that of its readers, or
  // is writable again at once; and the other way round.
  asio::awaitable<Result<mounts::Published>> ask_publish(mounts::AfterPublish then);
  asio::awaitable<Result<>> ask_writable();
  bool is_published() const;
  enum class Connection { Removed, Kept };
  asio::awaitable<Result<>> ask_down(Connection connection = Connection::Removed);
  bool is_wanted_up() const { return wanted_up_; }

  // reload.cpp: what a new configuration asks of it.
  // Who would lose open files if it were unmounted, in words; empty: nobody.
  asio::awaitable<Result<std::string>> users();
  // Takes over settings that leave mount and connection as they are, and sets its controllers' timers; none
  // of it if a controller refuses.
  asio::awaitable<Result<>> set_live(config::Volume settings, std::optional<config::Target> target);
  // A sentence for `status`: what the configuration says of it and could not be done; empty: nothing.
  void note_pending(std::string sentence) { status_.pending = std::move(sentence); }

  const config::Volume& settings() const { return settings_; }
  const std::optional<config::Target>& target() const { return target_; }
  const Status& status() const { return status_; }
  // Another host may write it: what was read is of one state as long as the superblock has this stamp.
  bool is_reader() const;
  std::uint64_t mounted_stamp() const { return mounted_stamp_; }
  bool is_outdated() const { return is_outdated_; }  // mounted anew as soon as nobody uses it
  // Its first attempt is under way, or an old state gives way to the one that was published: a matter of
  // seconds.
  bool is_settling() const {
    const bool is_new = status_.state == State::Waiting || status_.state == State::Connecting ||
                        status_.state == State::Mounting;
    return wanted_up_ && !tried_ && (is_new || (is_outdated_ && status_.state == State::Recovering));
  }
  // It needs a subsystem's controllers now, or may at any moment.
  bool wants_subsystem(const std::string& subsystem) const;

 private:
  enum class Link { Live, Down, Gone };  // of all paths to the subsystem together
  // One of the target's, each with its own retries.
  struct Portal {
    nvmetcp::Portal address;
    Backoff backoff;
    std::string controller{};  // that was connected or adopted for it last,
    std::string numeric{};     // and its address: a name is given to the next controller at once
    std::string reason{};      // why there is none
    SteadyTime next_attempt{};
    std::optional<SteadyTime> down_since{};
  };
  // Fenced: this host may not write to it any more. Exchanged: it is another file system than the mounted
  // one.
  enum class Verdict { Good, Silent, Lost, Fenced, Exchanged, Unsure };
  struct Finding {
    Verdict verdict = Verdict::Unsure;
    std::string reason;
  };

  asio::awaitable<void> run();
  asio::awaitable<Result<>> bring_up();
  asio::awaitable<Result<>> clear_broken_mount();
  asio::awaitable<void> guard_mount_point();
  asio::awaitable<void> take_down();
  asio::awaitable<Result<>> leave_host();
  asio::awaitable<void> wait_for_answer();

  // watch.cpp: a mounted volume's health
  asio::awaitable<void> watch();
  asio::awaitable<Finding> check_nvme();
  asio::awaitable<Finding> probe();
  Finding silence(const Error& error);
  bool is_io_moving();
  asio::awaitable<bool> is_shut_down();
  void look_for_damage(const mounts::MountedState& mounted);
  bool is_link_trusted();
  bool may_fail_over();
  asio::awaitable<void> ask_about_drives();
  std::string why_lost(Place place) const;
  void outage_starts(const std::string& reason);
  void outage_ends();
  void remember();
  asio::awaitable<void> save_history();

  asio::awaitable<Result<>> set_timers();  // reload.cpp

  // intent.cpp
  asio::awaitable<Result<>> record(Intent intent);
  asio::awaitable<Result<>> save(Intent intent);
  void note_intent(Result<Intent> intent);
  asio::awaitable<void> note_released();
  asio::awaitable<Result<>> follow_intent();
  asio::awaitable<Result<>> finish_down();

  // target.cpp: another target's controllers, of the same NQN
  bool has_strangers() const;
  std::string name_strangers() const;
  Result<> check_no_rival() const;
  asio::awaitable<bool> learn_names();
  asio::awaitable<void> learn_offers();
  asio::awaitable<Result<Place>> find_place();
  void learn_from(const nvmetcp::DiscoveryLog& log);
  asio::awaitable<void> look_at_strangers();

  // nvme_steps.cpp
  asio::awaitable<Result<>> bring_up_nvme();
  asio::awaitable<Result<>> adopt_mount();
  asio::awaitable<Result<>> pin_adopted(mounts::Superblock superblock);
  Result<> check_nothing_waits();
  asio::awaitable<Result<>> check_keys();
  Result<> check_paths_secured();
  void look_for_insecure_paths();
  asio::awaitable<Result<>> take_over_paths();
  asio::awaitable<Result<>> reach_subsystem();
  asio::awaitable<Result<std::string>> find_offer(nvmetcp::Portal portal);
  asio::awaitable<Result<nvmetcp::Namespace>> wait_for_namespace();
  asio::awaitable<void> rescan_namespaces();
  asio::awaitable<Result<>> mount_namespace(nvmetcp::Namespace block);
  std::optional<mounts::DeadMount> dead_mount();
  Error with_the_dead_mount(Error error);
  void warn_of_change(const FilesystemIdentity& before, const nvmetcp::Namespace& block);

  // fence.cpp: exclusive volumes
  bool is_fenced() const;
  bool is_alone() const;  // multi-mount protection is all that keeps other writers out
  asio::awaitable<Result<nvmetcp::Holding>> ask_reservation(ReservationAct act);
  std::string name_holder(const nvmetcp::Holding& holding, const mounts::Superblock& superblock) const;
  Error held_elsewhere(const nvmetcp::Holding& holding, const mounts::Superblock& superblock);
  Result<> check_fence_offered(const nvmetcp::Holding& holding, const mounts::Superblock& superblock) const;
  Result<> check_not_held(const nvmetcp::Holding& holding, const mounts::Superblock& superblock);
  asio::awaitable<Result<>> arm_fence(mounts::Superblock superblock);
  asio::awaitable<void> wait_for_late_writes(mounts::Superblock superblock, bool is_same_id);
  asio::awaitable<Result<>> adopt_fence(mounts::Superblock superblock);
  asio::awaitable<void> give_back();
  std::string why_fence_is_lost(const ProbeAnswer& answer);
  asio::awaitable<std::string> who_took_over();
  asio::awaitable<void> lose_fence(std::string reason);
  asio::awaitable<void> stop_writing_to(std::string other_uuid);
  asio::awaitable<void> leave_other_filesystem(std::string reason);
  asio::awaitable<void> cut_off();
  asio::awaitable<Result<>> check_may_unmount();
  void answer_take(const Result<>& result);

  // publish.cpp
  Result<> check_can_change_writing() const;
  asio::awaitable<Result<>> check_still_ours();
  std::string ready_reason() const;

  // reader.cpp: read-only volumes, and published ones
  void look_for_writers(const ProbeAnswer& answer);
  std::string reader_reason() const;
  asio::awaitable<bool> leave_outdated_mount();

  // paths.cpp
  asio::awaitable<void> tend_paths();
  asio::awaitable<void> connect_path(Portal& portal);
  asio::awaitable<Result<nvmetcp::Connection>> connect_portal(nvmetcp::Portal portal);
  const PathStatus* path_of(const Portal& portal) const;
  bool is_due(Portal& portal);
  bool is_down(const Portal& portal) const;
  bool may_lead_elsewhere(Portal& portal);
  asio::awaitable<void> follow_name(Portal& portal);
  asio::awaitable<void> leave_old_addresses();
  void note_path(Portal& portal, const std::string& controller);
  void note_missing_paths();

  // nvme_checks.cpp
  Result<> check_identity(const mounts::Superblock& superblock) const;
  Result<> check_safe_to_mount(const mounts::Superblock& superblock) const;
  std::string namespace_name() const;
  std::string damaged(const std::string& damage) const;

  // observe.cpp: what is, from sysfs and mountinfo
  Link look_at_paths();
  Place look_at_mount();
  bool is_broken(const mounts::Mount& mount) const;

  // nfs_steps.cpp
  asio::awaitable<Result<>> bring_up_nfs();
  Result<> check_adopted_nfs();

  State working_state(State first_time);
  void set_state(State state, std::string reason = {});
  Duration until_next(Duration pace) const;
  asio::awaitable<void> sleep(Duration duration);
  void wake();

  asio::any_io_executor executor_;
  config::Volume settings_;
  std::optional<config::Target> target_;
  std::unique_ptr<VolumeActions> actions_;
  const Clock& clock_;
  Pace pace_;
  OnChange on_change_;
  Backoff backoff_;
  std::vector<Portal> portals_;               // none for NFS
  std::vector<std::string> known_strangers_;  // controllers that the target was asked about
  asio::steady_timer sleep_timer_, path_timer_;
  asio::steady_timer answered_;  // never expires: cancelled when an answer is there
  bool stopped_ = false;
  bool wanted_up_ = true;
  Result<Intent> intent_;  // an error: not known
  bool is_recording_ = false;
  bool is_new_down_ = false;  // it was to be up until the `down` that is under way
  Connection on_down_ = Connection::Removed;
  bool tried_ = false;         // and failed, since it was last ready or asked up
  bool was_ready_ = false;     // since it was last asked up: what is under way now is a recovery
  bool healed_by_us_ = false;  // connected or mounted since it was last ready
  bool is_broken_ = false;     // the probe found a file system that shut down
  bool connecting_path_ = false;
  bool has_followed_name_ = false;  // the old address's controller is still there
  unsigned down_looks_ = 0;         // in a row that found no live path
  unsigned silent_probes_ = 0;      // in a row that were not answered
  std::optional<SteadyTime> silent_since_;
  SteadyTime next_probe_, next_mounted_state_, next_smart_, ready_since_;
  std::optional<std::uint64_t> completed_io_;  // when it was looked at last
  SteadyTime io_ended_at_{};                   // when it was last seen to have grown
  SteadyTime link_trusted_from_{};             // max: it is down, or no read has come back since
  bool unsaved_ = false, saving_ = false;      // the history
  std::string left_behind_;                    // who still has files of the detached mount open
  mounts::Guard guard_;                        // of the mount point, as it was looked at last
  std::optional<Result<>> down_answer_, take_answer_;
  bool is_take_asked_ = false, is_taking_ = false;
  bool is_try_due_ = false;
  bool is_namespace_missing_ = false;  // its subsystem was reached, at the last attempt
  bool is_fresh_hold_ = false;         // the reservation was free before this attempt to mount
  std::string taken_from_;             // by the last take; empty: from nobody
  std::string fence_lost_;             // why this host may not write, while its mount is still there
  bool is_exchanged_ = false;          // another file system was seen under the mount that is there
  std::string mmp_node_;               // what multi-mount protection called this host at the mount
  bool is_known_ = false;              // what is mounted: its superblock and fence were looked at
  std::uint64_t mounted_stamp_ = 0;    // of the superblock under a reader's mount
  bool is_changing_writing_ = false;   // it is being published, or made writable again
  bool is_outdated_ = false;           // a writer has closed what is mounted here
  std::string reader_users_;           // why the outdated mount stays
  Backoff leave_backoff_;
  SteadyTime next_leave_{};  // of attempts to leave it
  Status status_;
};

}  // namespace spark::volumes
