// The kernel's protocol without a kernel.
#include "staging/view/fuse/fuse_view.hpp"

#include <gmock/gmock.h>
#include <linux/fuse.h>
#include <sys/stat.h>

#include <cstring>

#include "tests/unit/staging/view/view_fixture.hpp"

namespace spark::staging::test {
namespace {

struct Sent {
  std::uint64_t id = 0;
  int error = 0;
  std::string bytes;
};

class FuseViewTest : public ViewTest {
 protected:
  std::filesystem::path copy_ = folder_ / "data";
  std::unique_ptr<ViewMap> map_;
  std::optional<ViewTree> tree_;
  std::optional<ViewReader> reader_;
  std::optional<FuseView> view_;
  std::vector<Sent> sent_;
  std::vector<std::string> told_;  // of files that can't be read
  std::set<pid_t> killed_;
  std::uint32_t next_backing_ = 1;  // 0: the kernel can't read files itself
  std::vector<int> backings_;       // those that it reads, as its numbers; and their files
  std::vector<ino_t> files_;
  IoBuffer buffer_{kReadBuffer};

  static Entry entry(const char* path, EntryType type, Bytes size = 0) {
    Entry made;
    made.path = path;
    made.type = type;
    made.size = size;
    made.mode = 0750;
    made.mtime_ns = -1;
    made.uid = 7;
    return made;
  }

  void SetUp() override {
    write_text(copy_ / "a/large", noise(9 * kMiB, 1));
    Manifest manifest;
    manifest.entries = {entry("", EntryType::Folder), entry("a", EntryType::Folder),
                        entry("a/large", EntryType::File, 9 * kMiB), entry("a/link", EntryType::File),
                        entry("s", EntryType::Symlink)};
    manifest.entries[3].link_to = "a/large";
    manifest.entries[4].target = "a/large";
    std::filesystem::create_directories(place_.folder);
    ASSERT_OK(write_manifest(place_.entries(), manifest));
    auto map = ViewMap::make(place_, Digest{}, 9, copy_.native());
    ASSERT_OK(map);
    map_ = std::move(*map);
    tree_ = tree_of(*map_);
    begin_process();
  }

  // Answers from now on.
  void begin_process() {
    reader_.emplace(*tree_, *map_, [this](const std::string& why) { told_.push_back(why); });
    view_.emplace(
        *tree_, *map_, *reader_,
        [this](const FuseMessage& message) {
          fuse_out_header head{};
          std::memcpy(&head, message.head.data(), sizeof head);
          EXPECT_EQ(head.len, sizeof head + message.bytes.size());
          sent_.push_back({head.unique,
                           head.error,
                           {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()}});
        },
        [this](pid_t thread) {
          EXPECT_GT(view_->waiting(), 0U) << "other threads can go on";
          return killed_.contains(thread);
        },
        Backings{[this](int file) {
                   struct stat info {};
                   ::fstat(file, &info);
                   if (next_backing_ == 0) return 0U;
                   files_.push_back(info.st_ino);
                   backings_.push_back(static_cast<int>(next_backing_));
                   return next_backing_++;
                 },
                 [this](std::uint32_t number) { std::erase(backings_, static_cast<int>(number)); }});
  }

  template <class Arguments>
  void ask(std::uint32_t opcode, NodeNumber node, const Arguments& arguments, std::uint64_t id = 5,
           pid_t thread = 77) {
    fuse_in_header head{};
    head.opcode = opcode;
    head.unique = id;
    head.nodeid = node + FUSE_ROOT_ID;
    head.pid = static_cast<std::uint32_t>(thread);
    head.len = sizeof head + sizeof arguments;
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
    bytes.append(reinterpret_cast<const char*>(&arguments), sizeof arguments);
    view_->answer(std::as_bytes(std::span(bytes)), buffer_);
  }
  void look_up(NodeNumber folder, const char* name) {
    std::array<char, 16> bytes{};
    std::strcpy(bytes.data(), name);
    ask(FUSE_LOOKUP, folder, bytes);
  }
  void begin(std::uint32_t flags2) {
    fuse_init_in init{};
    init.major = 7;
    init.minor = 45;
    init.flags = FUSE_INIT_EXT;
    init.flags2 = flags2;
    ask(FUSE_INIT, 0, init);
  }
  // As the kernel does: the number of the backing that it was told to use, or 0.
  std::uint32_t open_large() {
    ask(FUSE_OPEN, 2, fuse_open_in{});
    const auto out = last<fuse_open_out>();
    std::uint32_t backing = 0;
    std::memcpy(&backing, reinterpret_cast<const char*>(&out) + 12, sizeof backing);
    EXPECT_EQ(out.open_flags, FOPEN_NOFLUSH | (backing != 0 ? 1U << 7U : FOPEN_KEEP_CACHE));
    return backing;
  }
  void close_large() {
    ask(FUSE_RELEASE, 2, fuse_release_in{});
    EXPECT_EQ(sent_.back().error, 0);
  }
  void show_all() {
    map_->set_here({0, 8});
    map_->set_here({8, 1});
  }
  template <class Out>
  Out last() const {
    Out out{};
    EXPECT_EQ(sent_.back().error, 0);
    EXPECT_EQ(sent_.back().bytes.size(), sizeof out);
    std::memcpy(&out, sent_.back().bytes.data(), std::min(sizeof out, sent_.back().bytes.size()));
    return out;
  }
  static fuse_read_in part(Bytes offset, std::uint32_t bytes) {
    fuse_read_in read{};
    read.offset = offset;
    read.size = bytes;
    return read;
  }
};

TEST_F(FuseViewTest, AgreesOnTheProtocol) {
  fuse_init_in init{};
  init.major = 7;
  init.minor = 45;
  init.flags = FUSE_ASYNC_READ | FUSE_MAX_PAGES | FUSE_INIT_EXT | FUSE_WRITEBACK_CACHE;
  init.flags2 = 1U << 7U;
  ask(FUSE_INIT, 0, init);
  const auto out = last<fuse_init_out>();
  EXPECT_EQ(out.major, 7U);
  EXPECT_EQ(out.flags, static_cast<std::uint32_t>(FUSE_ASYNC_READ | FUSE_MAX_PAGES));
  EXPECT_EQ(out.max_background, 65535U);
  EXPECT_TRUE(view_->can_resend());
  init.minor = 20;
  ask(FUSE_INIT, 0, init);
  EXPECT_EQ(sent_.back().error, -EPROTO);
}

TEST_F(FuseViewTest, FindsNamesAndTheirAttributes) {
  look_up(0, "a");
  const auto folder = last<fuse_entry_out>();
  EXPECT_EQ(folder.attr.mode, static_cast<std::uint32_t>(S_IFDIR | 0750));
  EXPECT_EQ(folder.attr.nlink, 2U);
  EXPECT_EQ(static_cast<std::int64_t>(folder.attr.mtime), -1);
  EXPECT_EQ(folder.attr.mtimensec, 999'999'999U);
  look_up(static_cast<NodeNumber>(folder.nodeid - FUSE_ROOT_ID), "link");
  const auto link = last<fuse_entry_out>();
  look_up(static_cast<NodeNumber>(folder.nodeid - FUSE_ROOT_ID), "large");
  EXPECT_EQ(last<fuse_entry_out>().nodeid, link.nodeid);
  EXPECT_EQ(link.attr.nlink, 2U);
  EXPECT_EQ(link.attr.size, 9 * kMiB);
  look_up(0, "b");
  EXPECT_EQ(last<fuse_entry_out>().nodeid, 0U);
  ask(FUSE_READLINK, 4, 0);
  EXPECT_EQ(sent_.back().bytes, "a/large");
}

TEST_F(FuseViewTest, ShowsTheSpaceOfItsFiles) {
  ask(FUSE_STATFS, 0, 0);
  const auto out = last<fuse_statfs_out>();
  EXPECT_EQ(out.st.blocks * out.st.frsize, 9 * kMiB);
  EXPECT_EQ(out.st.files, 5U);
}

TEST_F(FuseViewTest, ListsAFolderInParts) {
  std::vector<std::string> names;
  for (fuse_read_in part = this->part(0, 64 + sizeof(fuse_entry_out));;) {
    ask(FUSE_READDIRPLUS, 1, part);
    ASSERT_EQ(sent_.back().error, 0);
    const std::string& bytes = sent_.back().bytes;
    if (bytes.empty()) break;
    for (std::size_t at = 0; at < bytes.size();) {
      fuse_direntplus head{};
      std::memcpy(&head, bytes.data() + at, FUSE_NAME_OFFSET_DIRENTPLUS);
      names.push_back(bytes.substr(at + FUSE_NAME_OFFSET_DIRENTPLUS, head.dirent.namelen));
      part.offset = head.dirent.off;
      at += FUSE_DIRENTPLUS_SIZE(&head);
    }
  }
  EXPECT_THAT(names, testing::ElementsAre(".", "..", "large", "link"));
}

TEST_F(FuseViewTest, AReadWaitsForItsPieces) {
  map_->set_here({0, 8});
  ask(FUSE_READ, 2, part(8 * kMiB - 10, 20), 8);
  ask(FUSE_READ, 2, part(100, 20), 9);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].id, 9U);
  EXPECT_EQ(sent_[0].bytes, noise(9 * kMiB, 1).substr(100, 20));
  EXPECT_EQ(map_->take_wanted(false), 8U);
  view_->settle(buffer_, false);
  EXPECT_EQ(sent_.size(), 1U);
  map_->set_here({8, 1});
  view_->settle(buffer_, false);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[1].id, 8U);
  EXPECT_EQ(sent_[1].bytes, noise(9 * kMiB, 1).substr(8 * kMiB - 10, 20));
  EXPECT_EQ(view_->waiting(), 0U);
}

TEST_F(FuseViewTest, AReadOfWhatWillNotComeFails) {
  map_->set_here({0, 8});
  ask(FUSE_READ, 2, part(8 * kMiB, 20), 8);
  map_->set_failed("no space");
  view_->settle(buffer_, false);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].error, -EIO);
  ask(FUSE_READ, 2, part(0, 20), 9);
  EXPECT_EQ(sent_[1].error, 0) << "what is here can be read";
}

// A short answer would be the file's end, and zeros behind it.
TEST_F(FuseViewTest, AnswersAReadInFullOrNotAtAll) {
  map_->set_here({0, 8});
  map_->set_here({8, 1});
  ask(FUSE_READ, 2, part(0, 2 * kMiB));
  EXPECT_EQ(sent_.back().error, -EIO);
  EXPECT_THAT(told_, testing::IsEmpty());
  std::filesystem::resize_file(copy_ / "a/large", 5000);
  for (int i = 0; i < 2; ++i) {
    ask(FUSE_READ, 2, part(0, 8192));
    EXPECT_EQ(sent_.back().error, -EIO);
  }
  EXPECT_THAT(told_, testing::ElementsAre("a/large: its copy is too short"));
}

TEST_F(FuseViewTest, SaysWhyAFileThatIsHereCantBeRead) {
  show_all();
  std::filesystem::remove(copy_ / "a/large");
  ask(FUSE_READ, 2, part(0, 20));
  EXPECT_EQ(sent_.back().error, -EIO);
  EXPECT_THAT(told_, testing::ElementsAre("a/large: No such file or directory"));
}

TEST_F(FuseViewTest, OnlyAKilledReadIsInterrupted) {
  ask(FUSE_READ, 2, part(0, 20), 8);
  fuse_interrupt_in interrupt{};
  interrupt.unique = 8;
  ask(FUSE_INTERRUPT, 0, interrupt, 9);
  view_->settle(buffer_, true);
  EXPECT_TRUE(sent_.empty());
  killed_.insert(77);
  view_->settle(buffer_, true);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].error, -EINTR);
}

// Another thread has the read in its hands, and lists it later. The kernel sends the interrupt once more.
TEST_F(FuseViewTest, AnInterruptThatComesBeforeItsReadWaitsIsAskedForAgain) {
  fuse_interrupt_in interrupt{};
  interrupt.unique = 8;
  ask(FUSE_INTERRUPT, 0, interrupt, 8 | 1);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].id, 9U);
  EXPECT_EQ(sent_[0].error, -EAGAIN);
  killed_.insert(77);
  ask(FUSE_READ, 2, part(0, 20), 8);
  ask(FUSE_INTERRUPT, 0, interrupt, 8 | 1);
  view_->settle(buffer_, true);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[1].id, 8U);
  EXPECT_EQ(sent_[1].error, -EINTR);
}

TEST_F(FuseViewTest, ChangesNothingAndKnowsNoOtherNode) {
  ask(FUSE_SETATTR, 2, fuse_setattr_in{});
  EXPECT_EQ(sent_.back().error, -ENOSYS);
  ask(FUSE_GETATTR, 100, fuse_getattr_in{});
  EXPECT_EQ(sent_.back().error, -ESTALE);
  ask(FUSE_OPEN, 1, fuse_open_in{});
  EXPECT_EQ(sent_.back().error, -EINVAL);
  ask(FUSE_READ, 1, part(0, 20));
  EXPECT_EQ(sent_.back().error, -EINVAL);
}

TEST_F(FuseViewTest, AKernelThatCantReadFilesItselfDoesNotAskForOpens) {
  begin(1U << 7U);
  EXPECT_EQ(last<fuse_init_out>().flags2, 0U);
  show_all();
  ask(FUSE_OPEN, 2, fuse_open_in{});
  EXPECT_EQ(sent_.back().error, -ENOSYS);
}

TEST_F(FuseViewTest, TheKernelReadsAFileThatIsCompleteItself) {
  begin(1U << 5U);
  const auto out = last<fuse_init_out>();
  EXPECT_EQ(out.flags, static_cast<std::uint32_t>(FUSE_INIT_EXT));
  EXPECT_EQ(out.flags2, 1U << 5U);
  std::uint32_t depth = 0;
  std::memcpy(&depth, reinterpret_cast<const char*>(&out) + 36, sizeof depth);
  EXPECT_EQ(depth, 1U);
  map_->set_here({0, 8});
  EXPECT_EQ(open_large(), 0U);
  map_->set_here({8, 1});
  EXPECT_EQ(open_large(), 0U) << "the first open is still there";
  close_large();
  EXPECT_EQ(open_large(), 0U);
  close_large();
  close_large();
  EXPECT_EQ(open_large(), 1U);
  struct stat info {};
  ASSERT_EQ(::stat((copy_ / "a/large").c_str(), &info), 0);
  EXPECT_EQ(files_.back(), info.st_ino);
  map_->withdraw({0, 9});
  EXPECT_EQ(open_large(), 1U) << "any other answer would fail, and the file is not written again";
  close_large();
  EXPECT_THAT(backings_, testing::ElementsAre(1));
  close_large();
  EXPECT_THAT(backings_, testing::IsEmpty());
  EXPECT_EQ(open_large(), 0U) << "it has been withdrawn";
}

TEST_F(FuseViewTest, AFileThatMayBeWrittenAgainIsReadThroughTheView) {
  begin(1U << 5U);
  show_all();
  std::filesystem::resize_file(copy_ / "a/large", 9 * kMiB + 4096);
  EXPECT_EQ(open_large(), 0U);
  close_large();
  std::filesystem::resize_file(copy_ / "a/large", 9 * kMiB);
  EXPECT_EQ(open_large(), 1U);
}

TEST_F(FuseViewTest, AFileThatTheKernelCantReadIsReadThroughTheViewWhileItIsOpen) {
  begin(1U << 5U);
  show_all();
  next_backing_ = 0;
  EXPECT_EQ(open_large(), 0U);
  next_backing_ = 7;
  EXPECT_EQ(open_large(), 0U);
  close_large();
  close_large();
  EXPECT_EQ(open_large(), 7U);
}

// It gets no FUSE_INIT.
TEST_F(FuseViewTest, TheNextProcessAnswersOpensAsTheOneBefore) {
  begin(1U << 5U);
  EXPECT_EQ(open_large(), 0U);
  show_all();
  begin_process();
  EXPECT_EQ(open_large(), 0U);
  close_large();
  close_large();
  EXPECT_EQ(open_large(), 1U);
  begin_process();
  EXPECT_EQ(open_large(), 1U);
  close_large();
  close_large();
  EXPECT_THAT(backings_, testing::IsEmpty());
  open_large();
  begin(1U << 5U);
  EXPECT_EQ(open_large(), 3U) << "a new connection has other numbers";
}

TEST(IsBeingKilled, LooksForSigkillAlone) {
  const TempFolder root;
  write_text(root / "proc/5/status", "Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n");
  write_text(root / "proc/6/status", "Name:\tx\nSigPnd:\t0000000000002000\nShdPnd:\t0000000000000002\n");
  const SystemRoot system{root.path()};
  EXPECT_TRUE(is_being_killed(system, 5));
  EXPECT_FALSE(is_being_killed(system, 6));
  EXPECT_TRUE(is_being_killed(system, 7)) << "it has ended";
  EXPECT_FALSE(is_being_killed(system, 0)) << "in another PID namespace";
}

}  // namespace
}  // namespace spark::staging::test
