#include "bench/files/model_loader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "bench/files/file_reader.hpp"

namespace spark::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Bytes kAlignment = 4096;  // of direct I/O

class Mapping {
 public:
  Mapping() = default;
  Mapping(std::size_t size, int protection, int flags, int fd)
      : size_(size), at_(::mmap(nullptr, size, protection, flags, fd, 0)) {}
  Mapping(Mapping&& other) noexcept : size_(other.size_), at_(std::exchange(other.at_, MAP_FAILED)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(at_, other.at_);
    return *this;
  }
  ~Mapping() {
    if (at_ != MAP_FAILED) ::munmap(at_, size_);
  }
  explicit operator bool() const { return at_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(at_); }

 private:
  std::size_t size_ = 0;
  void* at_ = MAP_FAILED;
};

struct Block {
  std::size_t file = 0;
  Bytes offset = 0, bytes = 0;
};

std::vector<Block> blocks_of(const ModelLoading& loading) {
  std::vector<Block> blocks;
  for (std::size_t file = 0; file < loading.files.size(); ++file) {
    const Bytes all = loading.files[file].bytes;
    for (Bytes at = 0; at < all; at += loading.block)
      blocks.push_back({file, at, std::min(loading.block, all - at)});
  }
  return blocks;
}

// Of these files in the page cache; no value where the kernel does not tell.
std::optional<Bytes> cached_bytes(const std::vector<DataFile>& files) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::size_t pages = 0;
  for (const DataFile& file : files) {
    const UniqueFd opened(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    const Mapping mapping(file.bytes, PROT_READ, MAP_SHARED, opened.get());
    std::vector<unsigned char> resident((file.bytes + page - 1) / page);
    if (!mapping || ::mincore(mapping.data(), file.bytes, resident.data()) != 0) return std::nullopt;
    pages += static_cast<std::size_t>(
        std::ranges::count_if(resident, [](unsigned char bits) { return (bits & 1) != 0; }));
  }
  return Bytes{pages} * page;
}

class Loader {
 public:
  explicit Loader(const ModelLoading& loading) : loading_(loading), blocks_(blocks_of(loading)) {}

  Result<Measured> run() {
    const std::vector<std::string> names = names_of();
    if (auto evicted = evict_from_cache(names); !evicted) return evicted.take_error();
    // Of another user's files the kernel says that all pages are cached.
    const std::optional<Bytes> left = cached_bytes(loading_.files);
    const Mapping tensors(loading_.threads * loading_.block, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1);
    if (!tensors) return fail_errno(errno, "getting memory for tensors");
    Measured loaded;
    FreeMemory& memory = loaded.memory.emplace();
    memory.before = free_memory();
    start_ = Clock::now();
    const auto ran = run_in_threads(loading_.threads, [&](std::size_t number) {
      if (auto done = load_some(tensors.data() + number * loading_.block); !done) fail_with_first(done);
    });
    loaded.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    memory.after = free_memory();
    if (left && *left < all_bytes() / 20) memory.cached = cached_bytes(loading_.files);
    if (!ran) return fail_with(ran.error(), "loading weights");
    if (*ran < loading_.threads)
      return fail(Errc::Failed,
                  "loading weights: the system allows " + std::to_string(*ran) + " threads only",
                  "raise the limit on processes (`ulimit -u`, pids.max)");
    if (error_) return fail(std::move(*error_));
    loaded.bytes = done_;
    loaded.ios = loading_.files.size();
    if (auto evicted = evict_from_cache(names); !evicted) return evicted.take_error();
    return loaded;
  }

 private:
  // A file as one thread has it open.
  struct Opened {
    UniqueFd file;
    Mapping mapping;  // only for mapped loading
  };

  std::vector<std::string> names_of() const {
    std::vector<std::string> names;
    for (const DataFile& file : loading_.files) names.push_back(file.path);
    return names;
  }

  Bytes all_bytes() const {
    Bytes bytes = 0;
    for (const DataFile& file : loading_.files) bytes += file.bytes;
    return bytes;
  }

  Bytes free_memory() const { return loading_.free_memory ? loading_.free_memory() : 0; }

  void fail_with_first(Result<>& failed) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = failed.error();
    next_ = blocks_.size();
  }

  Result<> load_some(char* tensor) {
    std::optional<std::size_t> number;
    Opened opened;
    for (std::size_t i = next_++; i < blocks_.size(); i = next_++) {
      const Block& block = blocks_[i];
      if (number != block.file) {
        auto file = open(loading_.files[block.file]);
        if (!file) return file.take_error();
        opened = std::move(*file);
        number = block.file;
      }
      if (opened.mapping) {
        std::memcpy(tensor, opened.mapping.data() + block.offset, block.bytes);
      } else if (auto read = read_block(opened.file, block, tensor); !read) {
        return read;
      }
      count(block.bytes);
    }
    return {};
  }

  Result<Opened> open(const DataFile& file) const {
    const int direct = loading_.way == LoadWay::Direct ? O_DIRECT : 0;
    Opened opened;
    opened.file = UniqueFd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | direct));
    struct stat status {};
    if (!opened.file || ::fstat(opened.file.get(), &status) != 0)
      return fail_errno(errno, "opening " + printable(file.path));
    if (static_cast<Bytes>(status.st_size) < file.bytes) return fail(shorter(file.path));
    if (loading_.way != LoadWay::Mapped) return opened;
    // Private and without advice, like safetensors.
    opened.mapping = Mapping(file.bytes, PROT_READ, MAP_PRIVATE, opened.file.get());
    if (!opened.mapping) return fail_errno(errno, "mapping " + printable(file.path));
    return opened;
  }

  Result<> read_block(const UniqueFd& file, const Block& block, char* tensor) const {
    for (Bytes done = 0; done < block.bytes;) {
      Bytes wanted = block.bytes - done;
      if (loading_.way == LoadWay::Direct) wanted = (wanted + kAlignment - 1) / kAlignment * kAlignment;
      const ssize_t got = ::pread(file.get(), tensor + done, wanted, static_cast<off_t>(block.offset + done));
      if (got < 0 && errno == EINTR) continue;
      const std::string& path = loading_.files[block.file].path;
      if (got < 0) return fail_errno(errno, "reading " + printable(path));
      if (got == 0) return fail(shorter(path));
      done += static_cast<Bytes>(got);
    }
    return {};
  }

  static Error shorter(const std::string& path) {
    return {Errc::Failed, printable(path) + " has become shorter since it was looked at", ""};
  }

  void count(Bytes bytes) {
    const Bytes done = done_ += bytes;
    if (loading_.progress != nullptr) *loading_.progress = done;
    if (loading_.rate == 0) return;
    const std::chrono::duration<double> due(static_cast<double>(done) / static_cast<double>(loading_.rate));
    std::this_thread::sleep_until(start_ + std::chrono::duration_cast<Clock::duration>(due));
  }

  const ModelLoading& loading_;
  const std::vector<Block> blocks_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<Bytes> done_ = 0;
  Clock::time_point start_;
  std::mutex mutex_;
  std::optional<Error> error_;
};

// Also the names of Hugging Face's and ollama's caches: digests.
bool is_weights(const std::string& path) {
  constexpr std::array kEndings = {".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".nemo"};
  if (std::ranges::any_of(kEndings, [&](const char* ending) { return path.ends_with(ending); })) return true;
  std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (name.starts_with("sha256-")) name.remove_prefix(7);
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<Measured> load_model(const ModelLoading& loading) {
  return Loader(loading).run();
}

std::vector<DataFile> weights_of(const std::vector<DataFile>& files, Bytes at_most) {
  const bool has_weights = std::ranges::any_of(files, is_weights, &DataFile::path);
  std::vector<DataFile> weights;
  for (const DataFile& file : files) {
    const Bytes bytes = std::min(file.bytes, at_most);
    if (bytes == 0 || (has_weights && !is_weights(file.path))) continue;
    weights.push_back({file.path, bytes});
    at_most -= bytes;
  }
  return weights;
}

}  // namespace spark::bench
