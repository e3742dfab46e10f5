#include "staging/cache/place/relocation.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/catalog/read_lease.hpp"
#include "staging/cache/place/begun.hpp"
#include "staging/cache/place/carrier.hpp"
#include "staging/cache/place/last_copies.hpp"
#include "staging/cache/place/left_behind.hpp"
#include "staging/files/space.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

class Mover {
 public:
  Mover(const CacheConfig& config, fs::path to, const CopyOptions& options, const Clock& clock,
        const RelocationHooks& hooks, const StopFlag& stop, LastCopies last)
      : config_(config),
        new_(std::move(to)),
        options_(options),
        clock_(clock),
        hooks_(hooks),
        stop_(stop),
        last_(last),
        doing_("moving the cache " + printable(config.path.native()) + " to " +
               printable(new_.path().native())) {
    options_.has_resting_source = true;
  }

  Result<Relocation> run() {
    std::error_code error;
    old_ = fs::canonical(config_.path, error);
    if (error) return fail_errno(error.value(), doing_);
    if (fs::equivalent(old_, new_.path(), error)) return finish();
    if (is_inside(new_.path().native(), old_.native()) || is_inside(old_.native(), new_.path().native()))
      return fail(Errc::Invalid, doing_ + ": one of the two is in the other", "choose another folder");
    auto known = open_old();
    if (!known) return known.take_error();
    id_ = std::move(*known);
    const auto renamed = rename();
    if (!renamed) return renamed.take_error();
    if (*renamed) return result_of(Relocated::Renamed, old_);
    if (auto copied = copy_all(); !copied) return copied.take_error();
    return result_of(Relocated::Copied, old_);
  }

 private:
  const CacheConfig& config_;
  const CacheFolder new_;
  CopyOptions options_;
  const Clock& clock_;
  const RelocationHooks& hooks_;
  const StopFlag& stop_;
  const LastCopies last_;
  const std::string doing_;
  fs::path old_;
  std::string id_;
  std::unique_ptr<CacheStore> store_;
  bool was_in_force_ = false;    // the new place
  std::set<std::string> there_;  // datasets whose newest copy an earlier call has carried
  std::set<fs::path> in_way_;    // copies in the new place that can't be deleted now
  Relocation result_;

  Relocation result_of(Relocated how, fs::path from) {
    result_.how = how;
    result_.from = std::move(from);
    return std::move(result_);
  }

  Result<std::string> open_old() {
    auto catalog = Catalog::open(config_.state_dir, IfMissing::Fail);
    if (!catalog) return catalog.take_error();
    store_ = std::make_unique<CacheStore>(CacheFolder(old_), std::move(*catalog), clock_, StepHook());
    if (auto known = store_->check_identity(config_.state_dir); !known) return known.take_error();
    return store_->catalog().cache_id();
  }

  // Exchanges the folder with a link, so that the old path leads to the cache before and after. False: they
  // are on two file systems, or one is a mount point.
  Result<bool> rename() {
    const fs::path& to = new_.path();
    std::error_code error;
    if (fs::is_symlink(to, error) && fs::read_symlink(to, error) == to) ::unlink(to.c_str());  // interrupted
    fs::create_directories(to.parent_path(), error);
    struct stat here {
    }, there{};
    if (::stat(old_.c_str(), &here) != 0 || ::stat(to.parent_path().c_str(), &there) != 0)
      return fail_errno(errno, doing_);
    if (here.st_dev != there.st_dev) return false;
    if (::rmdir(to.c_str()) != 0 && errno != ENOENT) {
      if (errno == EBUSY) return false;  // a mount point
      return fail_errno(errno, doing_ + ": making way at the new place",
                        "name a new folder, or an empty one");
    }
    if (::symlink(to.c_str(), to.c_str()) != 0) return fail_errno(errno, doing_);
    if (::renameat2(AT_FDCWD, old_.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
      const int number = errno;
      ::unlink(to.c_str());
      if (number == EBUSY || number == EXDEV || number == EINVAL) return false;
      return fail_errno(number, doing_);
    }
    for (const fs::path& folder : {to.parent_path(), old_.parent_path()})
      if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
    return true;
  }

  Result<> prepare() {
    std::error_code error;
    fs::create_directories(new_.path(), error);
    if (error) return fail_errno(error.value(), doing_);
    const auto mark = mark_in(new_.path());
    if (!mark) return mark.take_error();
    if (mark->id == id_) {
      was_in_force_ = mark->was_in_force;
      // Since an earlier call the cache may have been moved within its drive.
      auto renewed = mark->from == old_ ? Result<>() : write_mark(new_.path(), {id_, old_, was_in_force_});
      return renewed ? new_.make() : std::move(renewed);
    }
    const auto is_there = [&](const fs::path& path) { return fs::exists(fs::symlink_status(path, error)); };
    const auto its_own = new_.id();
    if (!its_own) return its_own.take_error();
    if (!its_own->empty() || is_there(new_.data()))
      return fail(
          Errc::Refused,
          doing_ + ": there is " + (its_own->empty() ? "a folder data" : "another cache") + " already",
          "name an empty folder");
    if (auto removed = remove_tree(new_.path(), kGivenUp); !removed) return removed;
    auto marked = write_mark(new_.path(), {id_, old_});
    return marked ? new_.make() : std::move(marked);
  }

  Result<> copy_all() {
    if (auto prepared = prepare(); !prepared) return prepared;
    const auto filling = hold_filling(new_, hooks_.patience);
    if (!filling) return fail_with(filling.error(), doing_);
    const auto rows = store_->generations();
    if (!rows) return rows.take_error();
    const auto newest = newest_of(*rows);
    const Wanted wanted = look_over(newest, *rows);
    auto replaced = clear_up(newest, wanted);
    if (!replaced) return replaced.take_error();
    if (auto room = check_room(newest); !room) return room;
    for (const GenerationRow& row : newest) {
      const auto carried = carry(row);
      if (!carried) return carried.take_error();
      result_.bytes += carried->bytes;
      if (carried->trouble.empty()) ++result_.datasets;
      if (carried->trouble.empty()) continue;
      result_.left.push_back(printable(row.dataset) + ": " + carried->trouble);
      for (UnwantedCopy& copy : *replaced)
        if (copy.place.folder.filename() == folder_name(row.dataset))
          keep(copy, "the later one can't be had");
    }
    if (auto gone = delete_and_tell(*replaced); !gone) return gone;
    if (auto removed = remove_tree(new_.path(), kFilling); !removed) return removed;
    if (auto brought = bring_leases(); !brought) return brought;
    if (auto go_on = after(hooks_.copy.step, "emptied"); !go_on) return go_on;
    return write_cache_id(new_.path(), id_);
  }

  std::vector<GenerationRow> newest_of(const std::vector<GenerationRow>& rows) {
    std::vector<GenerationRow> newest;
    for (const GenerationRow& row : rows) {
      const bool is_usable = row.state == GenerationState::Ready && row.is_sound();
      if (is_usable && (newest.empty() || newest.back().dataset != row.dataset)) newest.push_back(row);
    }
    for (const GenerationRow& row : rows) {
      const auto same = [&](const GenerationRow& one) { return one.dataset == row.dataset; };
      const std::string why = ": its copy is damaged, or of a volume that was being written";
      const bool is_new =
          result_.left.empty() || !result_.left.back().starts_with(printable(row.dataset) + ":");
      if (std::ranges::none_of(newest, same) && is_new) result_.left.push_back(printable(row.dataset) + why);
    }
    return newest;
  }

  fs::path filling_of_row(const GenerationRow& row) const {
    return filling_of(new_, new_.place(row.dataset, row.generation));
  }

  // Notes what an earlier call has carried.
  Wanted look_over(const std::vector<GenerationRow>& newest, const std::vector<GenerationRow>& rows) {
    for (const GenerationRow& row : newest)
      if (is_there(row)) there_.insert(row.dataset);
    return wanted_of(rows, newest, there_);
  }

  // What no copy needs takes room, and what was evicted since an earlier call would come back. Returns the
  // copies that later ones are to replace: if there is room, they stay until those are whole.
  Result<std::vector<UnwantedCopy>> clear_up(const std::vector<GenerationRow>& newest, const Wanted& wanted) {
    std::set<fs::path> fillings;
    for (const GenerationRow& row : newest)
      if (!there_.contains(row.dataset)) fillings.insert(filling_of_row(row));
    auto unwanted = find_unwanted(new_, wanted, was_in_force_, stop_);
    if (!unwanted) return unwanted;
    if (auto writable = make_writable(*unwanted, there_.size() < newest.size()); !writable)
      return writable.take_error();
    if (auto others = delete_others(new_, fillings); !others) return others.take_error();
    std::vector<UnwantedCopy> replaced;
    if (check_room(newest)) {
      const auto now = [](const UnwantedCopy& copy) { return !copy.is_replaced || !copy.obstacle.empty(); };
      const auto later = std::stable_partition(unwanted->begin(), unwanted->end(), now);
      replaced.assign(std::move_iterator(later), std::move_iterator(unwanted->end()));
      unwanted->erase(later, unwanted->end());
    }
    if (auto gone = delete_and_tell(*unwanted); !gone) return gone.take_error();
    if (auto gone = delete_unnamed(new_, wanted, *unwanted); !gone) return gone.take_error();
    return replaced;
  }

  static void keep(UnwantedCopy& copy, const std::string& why) {
    copy.obstacle = why;
    copy.is_left_here = true;
  }

  Result<> delete_and_tell(std::vector<UnwantedCopy>& copies) {
    if (auto gone = delete_unwanted(copies, stop_); !gone) return gone;
    for (const UnwantedCopy& copy : copies) {
      if (copy.obstacle.empty()) {
        result_.deleted.push_back({copy.dataset, copy.freed});
        continue;
      }
      in_way_.insert(copy.place.path());
      result_.kept.push_back(printable(copy.dataset) + ": an earlier copy of it stays in " +
                             printable(new_.path().native()) + ": " + copy.obstacle +
                             (copy.is_open ? " - repeat the command before the next steps" : ""));
    }
    return {};
  }

  // If the cache has been in the new place before, jobs may have copies there: those stay. `copies`:
  // something is to be copied.
  Result<> make_writable(std::vector<UnwantedCopy>& unwanted, bool copies) const {
    const bool deletes =
        std::ranges::any_of(unwanted, [](const UnwantedCopy& copy) { return copy.obstacle.empty(); });
    const bool is_served = ::access(new_.data().c_str(), W_OK) != 0 && errno == EROFS;
    if (!deletes && !(copies && is_served)) return {};
    auto stopped = was_in_force_ || is_served ? hooks_.stop_serving(new_.data()) : Result<>();
    if (stopped || is_served || stopped.error().kind != Errc::Refused) return stopped;
    for (UnwantedCopy& copy : unwanted) {
      if (copy.obstacle.empty()) keep(copy, stopped.error().what);
    }
    return {};
  }

  Result<> check_room(const std::vector<GenerationRow>& rows) {
    Bytes needed = 0;
    for (const GenerationRow& row : rows) {
      if (there_.contains(row.dataset)) continue;
      const auto taken = taken_by(filling_of_row(row));
      if (!taken) return fail_with(taken.error(), doing_);
      needed += row.allocated - std::min(row.allocated, *taken);
    }
    const auto space = space_of(new_.path());
    if (!space) return space.take_error();
    if (needed <= space->free) return {};
    return fail(Errc::NoSpace,
                doing_ + ": the copies take " + format_bytes(needed) + " more there, and " +
                    format_bytes(space->free) + " are free",
                "evict datasets that are not needed: `spark-stage ls` lists them");
  }

  // Verified by an earlier call.
  bool is_there(const GenerationRow& row) const {
    const Destination place = new_.place(row.dataset, row.generation);
    const auto identity = identity_of(place.path());
    auto manifest = identity ? ManifestReader::open(place.manifest()) : fail(identity.error());
    if (!manifest || manifest->header().root != *identity || manifest->header().dataset != row.dataset)
      return false;
    // A catalog that was lost begins its numbers again.
    const auto summary = summary_of(*manifest);
    return summary && summary->hash == row.hash;
  }

  Result<Carried> carry(const GenerationRow& row) {
    if (there_.contains(row.dataset)) return Carried{};
    const Destination to = new_.place(row.dataset, row.generation);
    if (in_way_.contains(to.path())) return Carried{0, "another copy that stays is in its place"};
    ReadLease lease(store_->catalog(), SpareLeases(store_->folder().path()),
                    "move-" + std::to_string(::getpid()), "a move of the cache");
    if (auto taken = lease.take(row); !taken) {
      if (taken.error().kind != Errc::NotFound) return taken.take_error();
      return Carried{0, taken.error().message()};  // evicted meanwhile
    }
    const CacheFolder& old = store_->folder();
    return Carrier(old, new_, options_, hooks_, stop_)
        .carry(row.dataset, old.place(row.dataset, row.generation), filling_of_row(row), to);
  }

  // A daemon that starts after the reload looks in the new folder for those that the catalog did not take.
  Result<> bring_leases() {
    const auto spare = SpareLeases(store_->folder().path()).all();
    if (!spare) return fail_with(spare.error(), doing_);
    for (const Lease& lease : spare->leases) {
      if (!is_live(lease, clock_.wall())) continue;
      const auto added = store_->catalog().add_lease(lease);
      if (added || added.error().kind == Errc::NotFound) continue;
      if (auto kept = SpareLeases(new_.path()).add(lease); !kept)
        return fail_with(std::move(kept.error()), doing_);
    }
    return {};
  }

  // The configuration names the new place already.
  Result<Relocation> finish() {
    auto known = open_old();  // the cache in force, in the new place
    if (!known) return known.take_error();
    id_ = std::move(*known);
    UniqueFd filling;
    const Clearing clearing{hooks_.stop_serving,
                            [&](const fs::path& from) { return bring_last(from, filling); }};
    auto gone = delete_left_behind(new_.path(), id_, clearing, stop_);
    if (!gone) return gone.take_error();
    auto settled = filling ? remove_tree(new_.path(), kFilling) : settle_in(new_.path());
    if (!settled) return settled.take_error();
    if (gone->from.empty()) return Relocation{};
    result_.bytes = gone->freed;
    return result_of(gone->is_absent ? Relocated::OldAbsent : Relocated::OldDeleted, std::move(gone->from));
  }

  Result<> bring_last(const fs::path& from, UniqueFd& filling) {
    CacheFolder old(from);
    if (auto held = old.hold(id_); !held) return held;
    Carrier carrier(old, new_, options_, hooks_, stop_);
    const auto begin = [&] { return begin_bringing(old, filling); };
    auto last = bring_last_copies(*store_, old, carrier, begin, hooks_.patience);
    if (!last) return last.take_error();
    result_.brought = std::move(last->brought);
    std::vector<std::string> lacking;
    for (LackingCopy& one : last->lacking) {
      lacking.push_back(printable(one.copy.dataset) + ", " + format_bytes(one.copy.bytes) + ": " + one.why);
      result_.left.push_back(printable(one.copy.dataset) + ": " + one.why);
      result_.deleted.push_back(std::move(one.copy));
    }
    if (lacking.empty() || last_ == LastCopies::Deleted) return {};
    return fail(Errc::Refused,
                "deleting the copies in " + printable(from.native()) +
                    ": these are in no other place: " + join(lacking, "; "),
                "stage them again, then repeat this; or delete them too: `sudo spark-stage cache move " +
                    printable(new_.path().native()) + " --discard`");
  }

  // What no copy goes on with may be what fills the drive.
  Result<> begin_bringing(const CacheFolder& old, UniqueFd& filling) {
    if (auto works = hooks_.work_in(new_.data()); !works) return works;
    auto held = hold_filling(new_, hooks_.patience);
    if (!held) return fail_with(std::move(held.error()), doing_);
    filling = std::move(*held);
    std::set<fs::path> fillings;
    const auto keys = old.keys();
    if (!keys) return keys.take_error();
    for (const std::string& key : *keys) {
      const auto numbers = old.generations(key);
      if (!numbers) return numbers.take_error();
      for (const std::uint64_t number : *numbers)
        fillings.insert(filling_of(new_, {new_.data() / key, std::to_string(number)}));
    }
    return delete_others(new_, fillings);
  }
};

}  // namespace

Result<Relocation> relocate(const CacheConfig& config, const fs::path& to, const CopyOptions& options,
                            const Clock& clock, const RelocationHooks& hooks, const StopFlag& stop,
                            LastCopies last) {
  if (!to.is_absolute() || to == "/")
    return fail(Errc::Invalid,
                "moving the cache to " + printable(to.native()) + ": that is no absolute path of a folder");
  fs::path plain = to.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  std::error_code error;
  const fs::path parent = fs::weakly_canonical(plain.parent_path(), error);
  if (error) return fail_errno(error.value(), "moving the cache to " + printable(to.native()));
  plain = parent / plain.filename();
  return Mover(config, std::move(plain), options, clock, hooks, stop, last).run();
}

}  // namespace spark::staging
