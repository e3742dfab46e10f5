#include "csi/node.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "csi/pods.hpp"
#include "csi/progress.hpp"

namespace spark::csi {
namespace {

constexpr Duration kRetry{1'000};
constexpr int kEarly = 12;  // answer this fraction of the time before the caller stops waiting

std::string in_words(const Publication& publication) {
  return "volume " + publication.volume +
         (publication.pod.empty() ? "" : " of pod " + printable(publication.pod));
}

Status taken(const Publication& publication, Place place) {
  const std::string target = printable(publication.target.native());
  if (place == Place::Something)
    return {Code::FailedPrecondition,
            "another program has mounted a file system at " + target + ": unmount it on the node"};
  return {Code::AlreadyExists, "another dataset or output is mounted at " + target};
}

Status busy(const std::string& volume) {
  return {Code::Aborted,
          "an earlier call for volume " + volume + " has not ended yet; kubelet repeats this one"};
}

tl::unexpected<Error> no_volume_at(const std::string& path) {
  return fail(Errc::NotFound, "no volume is mounted at " + printable(path));
}

}  // namespace

SteadyTime Call::answer_by() const {
  const auto patience = std::clamp<SteadyTime::duration>(end - begin, SteadyTime::duration(0), kKubeletWaits);
  return begin + patience - patience / kEarly;
}

Status Node::publish(const PublishRequest& request, const Call& call) {
  const auto publication = read_publication(request);
  if (!publication) return status_of(publication.error());
  const auto turn = turns_.take(publication->volume, call.answer_by(), false);
  if (!turn) return busy(publication->volume);
  const auto place = mounter_.look_at(publication->target);
  if (!place) return status_of(place.error());
  if (publication->is_output()) return publish_output(*publication, *place);
  return publish_dataset(*publication, call, turn, *place);
}

Status Node::publish_dataset(const Publication& publication, const Call& call, const Turns::Turn& turn,
                             Place place) {
  if (place == Place::Copy) return claim_mounted(publication, call, turn);
  if (place != Place::Empty) return taken(publication, place);
  const auto copy = stage(publication, call, turn);
  if (!copy) return status_of(copy.error());
  // Only a call that fails makes an event of the pod; kubelet repeats it soon.
  if (!copy->unchecked.empty() && turns_.tell_once(publication.volume)) {
    const std::string why = printable(publication.dataset) +
                            ": warning: the copy was not compared with its source: " + copy->unchecked;
    say_(in_words(publication) + ": " + why);
    return {Code::Aborted, why + "; it is mounted nevertheless"};
  }
  const auto mounted = mounter_.mount(copy->path, publication.target, Access::ReadOnly);
  if (!mounted) {
    release(publication.volume);
    return status_of(mounted.error());
  }
  say_("dataset " + printable(publication.dataset) + " is mounted for " + in_words(publication));
  return {};
}

// For a repeated call: the volume may have lost its lease on the copy that the pod has, and gets it again.
// Nothing is a reason to fail for a pod that already has its data.
Status Node::claim_mounted(Publication publication, const Call& call, const Turns::Turn& turn) {
  bool is_leased = false;
  if (const auto leased = daemon_.leased_volumes()) {
    const auto [first, last] = leased->equal_range(publication.volume);
    const auto is_wanted = [&](const auto& lease) { return lease.second == publication.dataset; };
    is_leased = std::any_of(first, last, is_wanted);
    if (first != last && !is_leased) return taken(publication, Place::Copy);
  }
  const auto is_mounted = [&](const std::string& path) { return mounter_.is_same(path, publication.target); };
  const auto generation = daemon_.generation_of(publication.dataset, is_mounted);
  if (!generation && is_leased && publication.now) return {};  // the live view, which its lease keeps
  publication.generation = generation.value_or(0);
  const auto claimed = generation ? stage(publication, call, turn) : fail(generation.error());
  if (claimed) return {};
  say_(in_words(publication) + " keeps dataset " + printable(publication.dataset) +
       ", perhaps without a lease: " + claimed.error().message());
  return {};
}

Status Node::publish_output(const Publication& publication, Place place) {
  const auto folder = daemon_.check_allowed(publication);
  const bool is_away = !folder && folder.error().kind == Errc::Unavailable;
  if (is_away && place == Place::Output) return {};  // as for datasets: the pod already has its folder
  if (!folder) return status_of(folder.error());
  if (place == Place::Output && mounter_.is_same(*folder, publication.target)) return {};
  if (place != Place::Empty) return taken(publication, place);
  const auto mounted = mounter_.mount(*folder, publication.target, Access::Writable);
  if (!mounted) return status_of(mounted.error());
  say_("output " + printable(publication.output) + " is mounted for " + in_words(publication));
  return {};
}

// Over lost connections and repeated calls: the daemon has one job for all of the volume's requests.
Result<Copy> Node::stage(const Publication& publication, const Call& call, const Turns::Turn& turn) {
  std::string words = printable(publication.dataset) + ": not asked for yet";
  SteadyTime heard = call.begin;
  const auto goes_on = [&] {
    return !turn.should_end() && !call.is_abandoned() && clock_.steady() < call.answer_by();
  };
  const auto note = [&](const json::object& progress) {
    words = progress_in_words(printable(publication.dataset), progress);
    heard = clock_.steady();
    return goes_on();
  };
  // Seen in time before the caller gives up.
  const auto silence = std::chrono::floor<Duration>((call.end - call.answer_by()) / 2);
  // A restarted daemon is available again within seconds.
  const auto patience = (call.answer_by() - call.begin) / kEarly;
  while (goes_on()) {
    auto staged = daemon_.stage(publication, silence, note);
    const bool is_away = !staged && staged.error().kind == Errc::Unavailable;
    if (staged && *staged) return std::move(**staged);
    if (!staged && (!is_away || clock_.steady() >= heard + patience)) return staged.take_error();
    if (is_away) sleep_(kRetry);
  }
  if (turn.should_end()) return fail(Errc::Cancelled, words + "; the pod is being removed");
  return fail(Errc::TimedOut, words);
}

void Node::release(const std::string& volume) {
  if (const auto released = daemon_.release(volume); !released)
    say_("the lease of volume " + volume + " is ended later: " + released.error().message());
}

Status Node::unpublish(const std::string& volume, const std::string& target, const Call& call) {
  if (auto valid = check_volume_id(volume); !valid) return status_of(valid.error());
  const auto path = read_target_path(target);
  if (!path) return status_of(path.error());
  const auto turn = turns_.take(volume, call.answer_by(), true);
  if (!turn) return busy(volume);
  const std::string output = output_at(*path);
  if (const auto unmounted = mounter_.unmount(*path); !unmounted) return status_of(unmounted.error());
  release(volume);
  // The daemon checks the output periodically; this call only makes it check now.
  if (const auto sent = output.empty() ? Result<>() : daemon_.job_ended(output); !sent)
    say_("output " + printable(output) + " is not sent yet: " + sent.error().message());
  say_("volume " + volume + " is unmounted and released");
  return {};
}

std::string Node::output_at(const std::filesystem::path& target) {
  const auto place = mounter_.look_at(target);
  if (!place || *place != Place::Output) return "";
  const auto outputs = daemon_.outputs();
  if (!outputs) {
    say_("the output at " + printable(target.native()) +
         " is looked at when spark-staged is back: " + outputs.error().message());
    return "";
  }
  for (const auto& [name, folder] : *outputs) {
    if (mounter_.is_same(folder, target)) return name;
  }
  return "";
}

Result<Usage> Node::usage(const std::string& volume, const std::string& path) {
  if (auto valid = check_volume_id(volume); !valid) return valid.take_error();
  const auto target = read_target_path(path);
  // Without a path the call is wrong; a path that can't be a target has no volume.
  if (!target && !path.empty()) return no_volume_at(path);
  if (!target) return target.take_error();
  const auto place = mounter_.look_at(*target);
  if (!place) return place.take_error();
  if (*place != Place::Copy && *place != Place::Output) return no_volume_at(target->native());
  return mounter_.usage(*target);
}

Result<> Node::reconcile(const std::filesystem::path& kubelet) {
  // The order matters: kubelet records a volume before the volume gets a lease.
  const auto leased = daemon_.leased_volumes();
  if (!leased) return leased.take_error();
  if (leased->empty()) return {};
  const auto wanted = volumes_of_pods(kubelet);
  if (!wanted) return wanted.take_error();
  for (auto lease = leased->begin(); lease != leased->end(); lease = leased->upper_bound(lease->first)) {
    const std::string& volume = lease->first;
    if (wanted->contains(volume) || turns_.is_taken(volume)) continue;
    say_("no pod has volume " + printable(volume) + " any more: its lease ends");
    release(volume);
  }
  return {};
}

}  // namespace spark::csi
