#include "staging/files/walk.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "base/access/named_path.hpp"
#include "base/described.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "staging/files/entry_scanner.hpp"
#include "staging/files/link_follower.hpp"

namespace spark::staging {

SPARK_MESSAGE(WalkNotes, (skipped, warnings, outside_links, copied_links));
namespace {

// More than cores: a network file system answers many requests in parallel.
constexpr unsigned kWalkThreads = 8;
constexpr std::size_t kNamesAtOnce = 256;  // names that a thread examines at a time
constexpr std::size_t kMostBatches = 64;   // waiting; limits the memory for a folder with millions of names

// Open while names in it wait to be examined.
struct OpenFolder {
  std::string path;
  UniqueFd fd;
};

struct Batch {
  std::shared_ptr<const OpenFolder> folder;
  std::vector<std::string> names;
};

// Threads list folders and examine batches of names, several threads for a large folder, until nothing is
// left.
class Scan {
 public:
  // `take` gets the entries found, one batch at a time.
  Scan(const Tree& tree, std::span<const std::string> exclude, Taken taken, const StopFlag& stop,
       std::function<void(Found)> take)
      : tree_(tree), look_(tree, exclude, taken, stop), take_(std::move(take)) {}

  Result<> run() {
    Found root;
    if (auto found = look_.at_root(root); !found) return found;
    take(std::move(root));
    return list_all();
  }
  // Starts at these folders, not at the root; their own entries are known.
  Result<> run(const std::vector<std::string>& folders) {
    folders_.assign(folders.begin(), folders.end());
    return list_all();
  }

 private:
  Result<> list_all() {
    const unsigned wanted = folders_.empty() ? 0 : kWalkThreads;
    const auto ran = run_in_threads(
        wanted, [this](std::size_t) { work(); }, [this] { stop(); });
    if (!ran) return fail_with(ran.error(), "listing " + tree_.shown(""));
    return error_ ? Result<>(fail(std::move(*error_))) : Result<>();
  }

  const Tree& tree_;
  EntryScanner look_;
  std::function<void(Found)> take_;
  std::mutex mutex_;  // guards all members below, while threads run
  std::condition_variable changed_;
  std::deque<std::string> folders_;  // paths of folders found and not listed yet
  std::deque<Batch> batches_;
  unsigned busy_ = 0;  // threads that may find more
  std::optional<Error> error_;

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      if (!error_) error_.emplace();
    }
    changed_.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex_);
    const auto has_work = [this] { return !batches_.empty() || !folders_.empty(); };
    while (true) {
      changed_.wait(lock, [&] { return error_ || has_work() || busy_ == 0; });
      if (error_ || !has_work()) return;
      ++busy_;
      Found found;
      Result<> done = batches_.empty() ? list_next(lock, found) : look_at_next(lock, found);
      --busy_;
      take(std::move(found));
      if (!done && !error_) error_ = std::move(done.error());
      changed_.notify_all();
    }
  }

  Result<> list_next(std::unique_lock<std::mutex>& lock, Found& found) {
    const std::string path = std::move(folders_.front());
    folders_.pop_front();
    lock.unlock();
    Result<> listed = list(path, found);
    lock.lock();
    return listed;
  }

  Result<> look_at_next(std::unique_lock<std::mutex>& lock, Found& found) {
    const Batch batch = std::move(batches_.front());
    batches_.pop_front();
    lock.unlock();
    Result<> looked = look_at(batch, found);
    lock.lock();
    return looked;
  }

  // The remaining names of the folder are examined here: most folders are small.
  Result<> list(const std::string& path, Found& found) {
    UniqueFd opened = open_beneath(tree_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    UniqueFd kept(opened ? ::fcntl(opened.get(), F_DUPFD_CLOEXEC, 0) : -1);
    if (!kept) return fail_errno(errno, "opening folder " + tree_.shown(path));
    Batch batch{std::make_shared<const OpenFolder>(OpenFolder{path, std::move(kept)}), {}};
    const auto add = [&](std::string name) -> Result<> {
      batch.names.push_back(std::move(name));
      return batch.names.size() < kNamesAtOnce ? Result<>() : hand_over(batch, found);
    };
    if (auto listed = for_each_name(std::move(opened), tree_.shown(path), add); !listed) return listed;
    return look_at(batch, found);
  }

  // To a free thread; done here if too many batches wait already.
  Result<> hand_over(Batch& batch, Found& found) {
    Batch full{batch.folder, std::exchange(batch.names, {})};
    {
      const std::scoped_lock lock(mutex_);
      if (batches_.size() < kMostBatches) {
        batches_.push_back(std::move(full));
        changed_.notify_one();
        return {};
      }
      take(std::exchange(found, {}));
    }
    return look_at(full, found);
  }

  Result<> look_at(const Batch& batch, Found& found) const {
    for (const std::string& name : batch.names) {
      auto looked = look_.at(batch.folder->fd.get(), batch.folder->path, name, found);
      if (!looked) return looked;
    }
    return {};
  }

  void take(Found found) {
    std::ranges::move(found.folders, std::back_inserter(folders_));
    take_(std::move(found));
  }
};

// A listing may name a file twice while its folder changes. Not std::ranges::unique: clang 14, which builds
// the fuzzers, can't compile it.
template <class Named>
void sort_by_path(Named& all) {
  std::ranges::sort(all, [](const auto& one, const auto& other) { return one.path < other.path; });
  const auto is_same = [](const auto& one, const auto& other) { return one.path == other.path; };
  all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
}

// A file's first name in path order becomes the file; the others are links to it.
void join_hard_links(Entries& entries, std::vector<LinkedPath>& all) {
  sort_by_path(all);
  std::map<FileId, std::string_view> first;
  auto linked = all.begin();
  for (Entry& entry : entries) {
    if (linked == all.end()) return;
    if (entry.path != linked->path) continue;
    const auto [name, is_first] = first.emplace(linked->file, linked->path);
    if (!is_first) entry.link_to = name->second;
    ++linked;
  }
}

std::set<std::string> with_their_parents(const std::vector<std::string>& folders) {
  std::set<std::string> all;
  for (const std::string& path : folders) {
    for (std::size_t end = path.size(); end != std::string::npos && end > 0; end = path.rfind('/', end - 1))
      all.insert(path.substr(0, end));
  }
  return all;
}

// Results keep them in memory, and hosts send them. Limited ones stay as they are.
void limit_names(std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 1000, kMostBytes = 64 * 1024, kForTheRest = 64;
  const auto size_of = [&](std::size_t count) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += names[i].size();
    return bytes;
  };
  if (names.size() <= kMostNames && size_of(names.size()) <= kMostBytes) return;
  std::size_t kept = std::min(names.size(), kMostNames) - 1;
  for (std::size_t bytes = size_of(kept); kept > 0 && bytes > kMostBytes - kForTheRest;)
    bytes -= names[--kept].size();
  const std::size_t more = names.size() - kept;
  names.resize(kept);
  names.push_back("and " + std::to_string(more) + " more");
}

// Merges the results of scans.
struct Collected {
  Walked walked;
  std::vector<LinkedPath> linked;

  void take(Found found) {
    for (const Linked& one : found.linked) linked.push_back({found.entries[one.entry].path, one.file});
    std::ranges::move(found.entries, std::back_inserter(walked.entries));
    std::ranges::move(found.skipped, std::back_inserter(walked.skipped));
  }
  Walked in_order() {
    sort_by_path(walked.entries);
    join_hard_links(walked.entries, linked);
    std::ranges::sort(walked.skipped);
    limit_names(walked.skipped);
    return std::move(walked);
  }
};

// A link's target may contain links again. The threads of each round end before the tree changes.
Result<Walked> follow_links(Tree& tree, std::span<const std::string> exclude, LinkFollower& follower,
                            Collected all, const StopFlag& stop) {
  const auto take = [&](Found found) { all.take(std::move(found)); };
  for (std::size_t first = 0;;) {
    auto followed = follower.follow(all.walked.entries, first, stop);
    if (!followed) return followed.take_error();
    std::ranges::move(followed->files, std::back_inserter(all.linked));
    if (followed->folders.empty()) break;
    first = all.walked.entries.size();
    auto done = Scan(tree, exclude, Taken::ByACopy, stop, take).run(followed->folders);
    if (!done) return done.take_error();
  }
  Walked walked = all.in_order();
  if (auto allowed = follower.check_allowed(walked.entries, stop); !allowed) return allowed.take_error();
  walked.outside_links = follower.kept();
  walked.copied_links = follower.followed();
  return walked;
}

Result<Collected> scan_parts(const Tree& tree, const Parts& parts, const StopFlag& stop) {
  Collected all;
  const auto take = [&](Found found) { all.take(std::move(found)); };
  const EntryScanner look(tree, {}, Taken::ByACopy, stop);
  Found above;
  if (auto root = look.at_root(above); !root) return root.take_error();
  std::set<std::string> single = with_their_parents(parts.folders);
  single.merge(with_their_parents(parts.files));
  for (const std::string& path : single) {
    const Parent parent = open_parent(tree, path);
    if (!parent.folder) return fail_errno(errno, "opening folder " + tree.shown(path));
    const std::string above_it = path.substr(0, path.size() - std::min(path.size(), parent.name.size() + 1));
    if (auto found = look.at(parent.folder.get(), above_it, parent.name, above); !found)
      return found.take_error();
  }
  take(std::move(above));
  auto done = Scan(tree, {}, Taken::ByACopy, stop, take).run(parts.folders);
  if (!done) return done.take_error();
  return all;
}

}  // namespace

Result<Walked> walk(const Tree& tree, std::span<const std::string> exclude, const StopFlag& stop) {
  Collected all;
  const auto take = [&](Found found) { all.take(std::move(found)); };
  if (auto done = Scan(tree, exclude, Taken::ByACopy, stop, take).run(); !done) return done.take_error();
  return all.in_order();
}

Result<Walked> walk_source(Tree& tree, std::span<const std::string> exclude, OutsideLinks links,
                           const StopFlag& stop) {
  Collected all;
  const auto take = [&](Found found) { all.take(std::move(found)); };
  tree.grafts = {};
  if (auto done = Scan(tree, exclude, Taken::ByACopy, stop, take).run(); !done) return done.take_error();
  LinkFollower follower(tree, links);
  auto walked = follow_links(tree, exclude, follower, std::move(all), stop);
  if (!walked) return walked;
  if (follower.kept() > 0) walked->warnings.push_back(follower.warning());
  auto dangling = check_dangling(tree, walked->entries, stop);
  if (!dangling) return dangling.take_error();
  if (!dangling->empty()) walked->warnings.push_back(std::move(*dangling));
  return walked;
}

Result<Walked> walk_folders(const Tree& tree, const std::vector<std::string>& folders, const StopFlag& stop) {
  auto all = scan_parts(tree, {folders, {}, {}}, stop);
  if (!all) return all.take_error();
  return all->in_order();
}

Result<Walked> walk_without_links(Tree& tree, const Parts& parts, const std::filesystem::path& limit,
                                  const StopFlag& stop) {
  tree.grafts = {};
  auto named = open_named(limit, Links::Followed);
  if (!named) return named.take_error();
  tree.grafts.limit = std::move(named->fd);
  tree.grafts.limit_path = std::move(named->path);
  auto all = scan_parts(tree, parts, stop);
  if (!all) return all.take_error();
  // Before links are followed: those that are left out may lead to nothing.
  if (parts.leaves_out) {
    std::erase_if(all->walked.entries, [&](const Entry& entry) {
      return entry.type != EntryType::Folder && parts.leaves_out(entry.path);
    });
    std::erase_if(all->linked, [&](const LinkedPath& file) { return parts.leaves_out(file.path); });
  }
  LinkFollower follower(tree, OutsideLinks::CopyAll);
  return follow_links(tree, {}, follower, std::move(*all), stop);
}

Result<std::vector<Footprint>> footprints_of(std::span<const Tree> trees, const StopFlag& stop) {
  std::vector<Footprint> sums;
  std::map<FileId, std::uint32_t> names_left;
  const auto take = [&](Found found) {
    for (const Linked& one : found.linked) {
      Entry& entry = found.entries[one.entry];
      // Not counted: the file has another name elsewhere, or later in the walk.
      if (--names_left.emplace(one.file, one.names).first->second > 0) entry.link_to = entry.path;
    }
    for (const Entry& entry : found.entries) sums.back().add(entry, kSmallestBlock);
  };
  for (const Tree& tree : trees) {
    sums.push_back({});
    if (auto done = Scan(tree, {}, Taken::Here, stop, take).run(); !done) return done.take_error();
  }
  return sums;
}

std::string to_text(const WalkNotes& notes) {
  return json::serialize(to_message(notes));
}

std::optional<WalkNotes> parse_walk_notes(std::string_view text) {
  const auto message = parse_json_object(text);
  if (!message) return std::nullopt;
  auto notes = from_message<WalkNotes>(*message);
  if (!notes) return std::nullopt;
  for (auto* names : {&notes->skipped, &notes->warnings}) {
    for (std::string& name : *names) name = printable(name);
    limit_names(*names);
  }
  return std::optional(std::move(*notes));
}

}  // namespace spark::staging
