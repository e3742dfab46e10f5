#include "tests/histories/outputs/host_actions.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace spark::histories {
namespace {

constexpr char kFiller[] = "filler";  // beside the output's folder

}  // namespace

void HostActions::note_volume(std::size_t host) {
  scene_.volume.changed[host] = scene_.now();
}

void HostActions::set_clock(const Dice& dice) {
  constexpr std::array<int, 7> kMinutes = {-60, -24 * 60, -10, 10, 60, 24 * 60, 0};
  Machine& one = hosts_.chosen(dice[0]);
  const auto skew = std::chrono::minutes(kMinutes[dice[1] % kMinutes.size()]);
  if (one.skew == skew) return;
  one.skew = skew;
  scene_.truth.last_clock_change = scene_.now();
  scene_.tell(one, "its clock now differs from the true time by " + std::string(skew.count() < 0 ? "" : "+") +
                       std::to_string(skew.count()) + " min");
}

void HostActions::lose_volume(const Dice& dice) {
  SharedVolume& volume = scene_.volume;
  const bool loses_all = dice[0] % 2 == 0;
  volume.hangs = dice[1] % 3 == 0;
  for (const auto& one : scene_.machines) {
    if (!loses_all && one->index != dice[2] % scene_.machines.size()) continue;
    if (!volume.is_away[one->index]) note_volume(one->index);
    volume.is_away[one->index] = true;
    scene_.tell(*one, volume.hangs ? "the volume does not answer" : "the volume is away");
  }
}

void HostActions::return_volume(const Dice& /*dice*/) {
  for (const auto& one : scene_.machines) {
    if (!scene_.volume.is_away[one->index]) continue;
    scene_.volume.is_away[one->index] = false;
    note_volume(one->index);
    scene_.tell(*one, "the volume is back");
  }
}

void HostActions::fill_volume(const Dice& dice) {
  if (scene_.volume.is_full) return;
  const std::string file = (scene_.volume.path / kFiller).native();
  struct statvfs room {};
  if (::statvfs(file.c_str(), &room) != 0 && ::statvfs(scene_.volume.path.c_str(), &room) != 0) return;
  // Some pages are left, so that a copy fails in its middle.
  const std::uint64_t left = dice[0] % 6;
  write_text(file, std::string(room.f_bavail > left ? (room.f_bavail - left) * room.f_bsize : 0, 'x'));
  scene_.volume.is_full = true;
  scene_.tell("the volume is full");
}

void HostActions::free_volume(const Dice& /*dice*/) {
  if (!scene_.volume.is_full) return;
  (void)::unlink((scene_.volume.path / kFiller).c_str());
  scene_.volume.is_full = false;
  scene_.tell("the volume has room again");
}

void HostActions::take_volume_over(const Dice& dice) {
  SharedVolume& volume = scene_.volume;
  const std::size_t to = dice[0] % scene_.machines.size();
  if (volume.is_nfs || volume.holder == to) return;
  note_volume(volume.holder);
  note_volume(to);
  volume.holder = to;
  scene_.tell(*scene_.machines[to], "takes the volume over");
}

void HostActions::kill_daemon(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  if (!one.daemon) return;
  one.daemon = nullptr;
  scene_.tell(one, "the daemon is killed");
  if (dice[1] % 2 == 0) return;
  hosts_.start(one);
  scene_.tell(one, "the daemon starts");
}

// What no flush has reached is lost in part: files are empty, or not there. Records are flushed one by one.
void HostActions::cut_power(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  one.daemon = nullptr;
  scene_.tell(one, "a power cut");
  job_actions_.job().die();
  std::mt19937_64 random(dice[1]);
  file_times().wait_for_tick();
  for (const auto& [file, text] : content_of(one.job_folder())) {
    const auto known = one.durable.find(file);
    const bool is_safe =
        file.empty() || file.ends_with('/') || (known != one.durable.end() && known->second == text);
    if (is_safe || random() % 2 == 0) continue;
    std::error_code error;
    if (random() % 2 == 0) {
      std::filesystem::resize_file(one.job_folder() / file, 0, error);
    } else {
      std::filesystem::remove(one.job_folder() / file, error);
    }
    scene_.tell(one, file + " is lost in part");
  }
  file_times().see(one.job_folder().native());
  for (auto& [name, save] : scene_.truth.here[one.index]) {
    if (save.state != Save::State::Complete) continue;
    const Content left = content_of(one.job_folder() / name);
    // Nobody can know that it survived if it was not flushed before, and the daemon's record follows that.
    // A daemon that has just started has not recorded it yet.
    const bool is_recorded = scene_.now() - std::max(save.changed, one.started) > std::chrono::seconds(30);
    const bool was_flushed = std::ranges::all_of(left, [&](const auto& file) {
      const auto known = one.durable.find(file.first.empty() ? name : name + "/" + file.first);
      return file.first.ends_with('/') || (known != one.durable.end() && known->second == file.second);
    });
    if (!was_flushed || !is_recorded) save.state = Save::State::Unclear;
    if (!scene_.truth.is_complete(name, left)) save.state = Save::State::Torn;
  }
  std::erase_if(scene_.truth.here[one.index], [&](const auto& save) {
    std::error_code error;
    return !std::filesystem::exists(one.job_folder() / save.first, error);
  });
  ++libc().boots;
  one.booted = scene_.now() + std::chrono::seconds(1);
  hosts_.run_for(Duration(2'000));
  hosts_.start(one);
  scene_.tell(one, "it has booted, and the daemon starts");
}

void HostActions::start_daemon(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  if (one.daemon) return;
  hosts_.start(one);
  scene_.tell(one, "the daemon starts");
}

void HostActions::doom_worker(const Dice& dice) {
  constexpr std::array<const char*, 8> kVerbs = {"stage-out",   "stage-out",   "stage-out", "prune-output",
                                                 "tidy-output", "scan-output", "record",    "list-published"};
  constexpr std::array<int, 4> kErrors = {EIO, ENOSPC, ESTALE, EACCES};
  Machine& one = hosts_.chosen(dice[0]);
  one.fate.verb = kVerbs[dice[1] % kVerbs.size()];
  one.fate.fault.nth = 1 + dice[2] % 40;
  one.fate.fault.error = dice[2] / 64 % 2 == 0 ? 0 : kErrors[dice[2] / 128 % kErrors.size()];
  one.fate.interlude = nullptr;
}

void HostActions::slow_worker(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  one.fate.verb = "stage-out";
  one.fate.fault = {1 + dice[1] % 25, 0, false};
  one.fate.interlude = [this, most = 1 + dice[2] % 10] {
    const bool is_again = most % 2 == 0 && job_actions_.job().last_step() > 0;
    if (is_again) job_actions_.job().die();
    if (!job_actions_.job().is_saving())
      job_actions_.job().begin(job_actions_.job().last_step() + (is_again ? 0 : 100),
                               job_actions_.kept_by_job);
    for (unsigned done = 0; done < most && job_actions_.job().go_on(); ++done) {
    }
  };
}

}  // namespace spark::histories
