#include "staging/copy/copy.hpp"

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/need.hpp"
#include "staging/copy/pipeline.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/copy/transfer/touched.hpp"
#include "staging/copy/verify/digest_check.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/files/space.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {
namespace {

// A copy into its own source could never equal it; a copy over a parent of its source would delete the
// source.
Result<> check_apart(const Tree& source, const Destination& destination) {
  const std::string from = source.root();
  const std::string to = present_path(destination.path()).native();
  if (!is_inside(to, from) && !is_inside(from, to)) return {};
  return fail(Errc::Invalid,
              "copying " + printable(from) + " to " + printable(to) + ": one is inside the other",
              "choose a destination outside the source");
}

class Copy {
 public:
  Copy(const CopyHooks& hooks, const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop)
      : hooks_(hooks), options_(options), progress_(progress), stop_(stop), monitor_(progress) {}

  Result<CopyReport> go(const std::filesystem::path& from, const std::filesystem::path& to) {
    auto source = open_tree(from, options_.refuses_linked_source ? RootLink::Refused : RootLink::Followed);
    if (!source) return fail(with_denial(std::move(source.error())));
    if (auto noted = note_file_system(*source); !noted) return noted.take_error();
    auto destination = destination_of(to);
    if (!destination) return destination.take_error();
    if (auto apart = check_apart(*source, *destination); !apart) return apart.take_error();
    auto area =
        monitor_.during(CopyPhase::Walking, [&] { return PartialArea::open(destination->partial(), stop_); });
    if (!area) return area.take_error();
    if (auto ready = recover_publishing(*destination, *area); !ready) {
      return ready.take_error();
    }
    auto earlier = earlier_copy(*destination);
    if (!earlier) return earlier.take_error();
    if (*earlier) {
      if (auto intact = check_intact(*destination, **earlier); !intact) return intact.take_error();
    }
    auto walked = monitor_.during(CopyPhase::Walking, [&] { return walk(*source); });
    if (!walked) return fail(with_change(std::move(walked.error())));
    if (options_.complete_state) {  // after the walk: the quiet source notices later changes
      const auto complete = check_still_complete(*source, *options_.complete_state);
      if (!complete) return complete.take_error();
    }
    const auto same = is_same(*source, *walked, *destination, *area, *earlier);
    if (!same) return fail(with_change(same.error()));
    if (*same) {
      auto damage = options_.verify || options_.sha256 ? damage_of(*destination, **earlier) : std::string();
      if (!damage) return damage.take_error();
      if (damage->empty()) return unchanged(*destination, **earlier, *walked, *area);
      damage_ = std::move(*damage);
    }
    if (auto there = check_place(*source, *walked, *destination, *earlier); !there) return there.take_error();
    auto copied =
        copy_to(*destination, *source, std::move(*walked), *area, previous_at(*destination, *earlier));
    // Damage belongs to files, and the copy has shared the earlier one's.
    if (!copied && is_taken_over_damage_) {
      damage_ = copied.error().what;
      auto again = monitor_.during(CopyPhase::Walking, [&] { return walk(*source); });
      if (!again) return again.take_error();
      copied = copy_to(*destination, *source, std::move(*again), *area, std::nullopt);
    }
    if (copied && !damage_.empty())
      copied->warnings.push_back("the earlier copy was damaged, and everything was copied again: " + damage_);
    if (copied) return copied;
    copied.error() = with_change(std::move(copied.error()));
    // A host that has taken the folder over also changes the files in it, which causes other errors here.
    auto held = area->check_held();
    return !held && was_taken_over(held.error()) ? Result<CopyReport>(held.take_error()) : std::move(copied);
  }

 private:
  const CopyHooks& hooks_;
  const CopyOptions& options_;
  const ProgressSink& progress_;
  const StopFlag& stop_;
  Monitor monitor_;
  std::string damage_;                 // of the earlier copy, found by reading it back
  std::vector<bool> equal_;            // see Previous
  bool is_taken_over_damage_ = false;  // found in a file that was shared with the earlier copy

  // Whether the source equals the earlier copy, after files that only look changed were compared.
  Result<bool> is_same(const Tree& source, Walked& walked, const Destination& destination,
                       const PartialArea& area, std::optional<ManifestReader>& earlier) {
    if (!earlier || !earlier->rewind()) return false;
    const auto copy = open_tree(destination.path());
    if (!copy) return false;
    if (is_same_source(source, *copy, *earlier, walked.entries)) return true;
    auto compared = compare_touched(source, walked.entries, destination, area, options_, monitor_, stop_);
    if (!compared) return compared.take_error();
    equal_ = std::move(compared->equal);
    if (!compared->is_same) return false;
    if (auto done = renew(destination, walked.entries); !done) return done.take_error();
    auto renewed = ManifestReader::open(destination.manifest());
    if (!renewed) return renewed.take_error();
    earlier = std::move(*renewed);
    return is_same_source(source, *copy, *earlier, walked.entries);
  }

  // The content of the earlier copy that differs from its manifest; empty if it is intact.
  Result<std::string> damage_of(const Destination& destination, ManifestReader& manifest) {
    const auto copy = open_tree(destination.path());
    if (!copy) return copy.take_error();
    if (auto again = manifest.rewind(); !again) return again.take_error();
    Monitor monitor(progress_);
    const auto same = verify_copy(*copy, manifest, options_, monitor, stop_, options_.earlier.times);
    if (same) return std::string();
    if (!is_damage(same.error())) return fail(same.error());
    return same.error().what;
  }

  Result<> check_place(const Tree& source, const Walked& walked, const Destination& to,
                       std::optional<ManifestReader>& earlier) const {
    if (!earlier || options_.replaces == Replaces::Anything) return {};
    const auto had = most_in(*earlier);
    if (!had) return had.take_error();
    if (*had == EntryType::Folder) return {};  // only empty folders
    if (auto again = earlier->rewind(); !again) return again;
    const auto root = earlier->next();
    const bool keeps_source = options_.replaces == Replaces::SameSource;
    if (root && root->type != walked.entries.front().type) {
      const bool was_folder = root->type == EntryType::Folder;
      return fail(Errc::Refused,
                  shown_path(to.path()) + " is a copy of a " + (was_folder ? "folder" : "file") + ", and " +
                      source.shown("") + " is a " + (was_folder ? "file" : "folder"),
                  std::string("choose another name") + (was_folder ? ", such as one in that folder" : "") +
                      (keeps_source ? "; --accept-source replaces that copy" : ", or delete that copy"));
    }
    if (!keeps_source) return {};
    const std::string& then = earlier->header().source;
    if (then == source.root()) return check_source_place(source, walked, earlier->header(), *had);
    return fail(Errc::Refused,
                shown_path(to.path()) + " is a copy of " + printable(then) + ", not of " + source.shown(""),
                "choose another name; --accept-source replaces that copy by one of " + source.shown(""));
  }

  // None if there is no earlier copy, or if it is damaged.
  std::optional<Previous> previous_at(const Destination& destination,
                                      const std::optional<ManifestReader>& earlier) const {
    if (!earlier || !damage_.empty()) return std::nullopt;
    auto tree = open_tree(destination.path());
    if (!tree) return std::nullopt;
    return Previous{std::move(*tree), destination.manifest(), 0, 0, true, equal_};
  }

  Result<Walked> walk(Tree& source) const {
    auto walked = options_.only.empty() ? walk_source(source, options_.exclude, options_.links, stop_)
                                        : walk_folders(source, options_.only, stop_);
    if (!walked) walked.error().is_of_source = true;
    return walked;
  }

  // A changed copy contains other people's work: it is neither replaced nor treated as a copy of the source.
  Result<> check_intact(const Destination& destination, ManifestReader& manifest) {
    const auto copy = open_tree(destination.path());
    if (!copy) return copy.take_error();
    auto differences =
        monitor_.during(CopyPhase::Walking, [&] { return compare_metadata(*copy, manifest, 1, stop_); });
    if (differences && !differences->empty() && options_.earlier.times == FileTimes::Ignored)
      differences = compare_contents(*copy, manifest);
    if (!differences) return differences.take_error();
    if (differences->empty()) return {};
    return fail(
        Errc::Refused,
        "copying to " + copy->shown("") + ": it was changed since it was copied: " + differences->front(),
        "move it away or delete it, then copy again");
  }

  // Restored times spare the next call this comparison.
  Result<std::vector<std::string>> compare_contents(const Tree& copy, ManifestReader& manifest) {
    if (auto again = manifest.rewind(); !again) return again.take_error();
    Monitor monitor(progress_);
    const auto verified = verify_copy(copy, manifest, options_, monitor, stop_, FileTimes::Ignored);
    if (!verified && verified.error().kind == Errc::Mismatch) return std::vector{verified.error().what};
    if (!verified) return verified.take_error();
    if (auto again = manifest.rewind(); !again) return again.take_error();
    if (auto restored = restore_times(copy, manifest); !restored) return restored.take_error();
    return std::vector<std::string>();
  }

  Result<CopyReport> unchanged(const Destination& destination, ManifestReader& manifest, const Walked& walked,
                               PartialArea& area) {
    if (auto cleared = area.clear(); !cleared) return cleared.take_error();
    if (auto again = manifest.rewind(); !again) return again.take_error();
    const auto summary = summary_of(manifest);
    if (!summary) return summary.take_error();
    CopyReport report = report_of(*summary, monitor_);
    report.unchanged = true;
    if (options_.sha256) {
      const auto checked =
          check_digests(destination.path(), destination.manifest(), options_, monitor_, stop_);
      if (!checked) return checked.take_error();
      report.sha256_files = *checked;
    }
    add_notes(report, walked);
    return report;
  }

  Result<CopyReport> copy_to(const Destination& destination, const Tree& source, Walked walked,
                             PartialArea& area, std::optional<Previous> previous) {
    PipelineEnds ends;
    ends.make_room = [&](const Entries& entries, const Resumed& resumed) -> Result<> {
      if (auto data = check_holes(entries, source.shown("")); !data) return data;
      return check_space(need_of(entries, resumed, area), destination.folder, options_.keep_free);
    };
    ends.name = [&](ManifestHeader& header) {
      header.source = source.root();
      header.file_system = source.file_system;
    };
    const bool has_previous = previous.has_value();
    ends.found_damage = [this, has_previous] { is_taken_over_damage_ = has_previous; };
    const QuietSource quiet = options_.needs_quiet_source ? QuietSource(walked.entries) : QuietSource();
    ends.publish = [&](const Sealed& sealed, Bytes /*not_copied*/) {
      if (auto same = quiet.check(source, options_.exclude, options_.links, stop_); !same) return same;
      const Replacing replacing = options_.earlier.replaced_in_two_steps ? Replacing::InTwoSteps
                                  : options_.earlier.may_lack_its_name   ? Replacing::AsPossible
                                                                         : Replacing::AtOnce;
      return publish(destination, area, sealed.root, hooks_.step, replacing);
    };
    CopyJob job{&source,
                std::move(walked),
                &area,
                std::move(previous),
                &options_,
                &stop_,
                SystemClock().wall(),
                hooks_.before_read};
    return copy_walked(std::move(job), ends, monitor_);
  }
};

}  // namespace

Result<CopyReport> copy_with(const CopyHooks& hooks, const std::filesystem::path& source,
                             const std::filesystem::path& destination, const CopyOptions& options,
                             const ProgressSink& progress, const StopFlag& stop) {
  return Copy(hooks, options, progress, stop).go(source, destination);
}

Result<CopyReport> copy(const std::filesystem::path& source, const std::filesystem::path& destination,
                        const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop) {
  return copy_with({}, source, destination, options, progress, stop);
}

}  // namespace spark::staging
