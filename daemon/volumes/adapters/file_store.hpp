// The persistent data of a volume, in files of the state folder that workers write.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/file.hpp"
#include "daemon/config/model.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/seams/store.hpp"

namespace spark::volumes {

class FileStore final : public VolumeStore {
 public:
  FileStore(Asker& asker, const std::string& volume, const std::filesystem::path& folder)
      : asker_(asker),
        base_(folder / volume),
        pin_file_(base_ + ".json"),
        intent_file_(base_ + ".intent.json"),
        leaving_file_(base_ + ".leaving.json"),
        pinned_(read_pin(pin_file_)) {}

  asio::awaitable<Result<>> pin(FilesystemIdentity identity) override {
    Result<> saved;
    if (identity == FilesystemIdentity{})
      saved = co_await remove(pin_file_);
    else
      saved = co_await write(pin_file_, content_of(identity));
    if (saved) pinned_ = std::move(identity);
    co_return saved;
  }

  // None if a person has removed the file, as the hint of a refused volume says.
  Result<FilesystemIdentity> pinned_identity() override {
    const bool is_removed = ::access(pin_file_.c_str(), F_OK) != 0 && errno == ENOENT;
    if (!pinned_ || is_removed) pinned_ = read_pin(pin_file_);
    return pinned_;
  }

  // No record means up, and a volume that is down is released once the file of its leaving is removed: a full
  // state folder has always room for that.
  asio::awaitable<Result<>> save_intent(Intent intent) override {
    Result<> marked;
    if (intent.up) {
      marked = co_await remove(intent_file_);
      if (marked && is_leaving()) marked = co_await remove(leaving_file_);
      co_return marked;
    }
    if (!intent.is_released) marked = co_await write(leaving_file_, {});
    if (intent.is_released && is_leaving()) marked = co_await remove(leaving_file_);
    if (!marked) co_return marked;
    intent.is_released = true;
    json::object content = to_json(intent);
    if (read_record(intent_file_) == content) co_return Result<>{};
    co_return co_await write(intent_file_, std::move(content));
  }

  Result<Intent> saved_intent() override {
    const auto text = read_regular_file(intent_file_);
    if (!text && text.error().kind == Errc::NotFound) return Intent{};
    if (!text) return text.take_error();
    const auto object = parse_json_object(*text);
    auto intent = object ? intent_from_json(*object) : Result<Intent>(fail(object.error()));
    if (!intent) return fail_with(std::move(intent.error()), intent_file_.native());
    if (is_leaving()) intent->is_released = false;
    return intent;
  }

  asio::awaitable<Result<>> save(Record kind, json::object record) override {
    if (record.empty()) co_return co_await remove(file_of(kind));
    if (is_of_a_mount(kind)) record["boot"] = boot_id(SystemRoot{});
    co_return co_await write(file_of(kind), std::move(record));
  }

  json::object saved(Record kind) override {
    auto record = read_record(file_of(kind)).value_or(json::object{});
    const bool is_over = is_of_a_mount(kind) && get_string(record, "boot") != boot_id(SystemRoot{});
    return is_over ? json::object{} : record;
  }

  // A worker that mounts also pins, in one step.
  const std::filesystem::path& pin_file() const { return pin_file_; }
  void note_pinned(FilesystemIdentity identity) { pinned_ = std::move(identity); }
  static json::object content_of(const FilesystemIdentity& identity) {
    return {{"type", identity.type},
            {"uuid", identity.uuid},
            {"bytes", identity.bytes},
            {"namespace_id", identity.namespace_id},
            {"stamp", static_cast<std::int64_t>(identity.stamp)},
            {"is_published", identity.is_published}};
  }

 private:
  static constexpr Duration kRecord{30'000};  // a small file on the system's own drive

  static bool is_of_a_mount(Record kind) { return kind == Record::Held || kind == Record::Renamed; }

  static std::optional<json::object> read_record(const std::filesystem::path& file) {
    const auto text = read_regular_file(file);
    if (!text) return std::nullopt;
    auto object = parse_json_object(*text);
    if (object) return std::move(*object);
    log::survived(Error{Errc::Failed, "the record in " + file.native() + " can't be understood", ""});
    return std::nullopt;
  }

  static Result<FilesystemIdentity> read_pin(const std::filesystem::path& file) {
    const auto text = read_regular_file(file);
    if (!text && text.error().kind == Errc::NotFound) return FilesystemIdentity{};
    if (!text) return text.take_error();
    const auto object = parse_json_object(*text);
    if (!object) return fail_with(object.error(), file.native());
    return FilesystemIdentity{get_text(*object, "type"),
                              get_text(*object, "uuid"),
                              get_count(*object, "bytes"),
                              get_text(*object, "namespace_id"),
                              static_cast<std::uint64_t>(get_int(*object, "stamp").value_or(0)),
                              get_bool(*object, "is_published").value_or(false)};
  }

  asio::awaitable<Result<>> write(std::filesystem::path file, json::object content) {
    json::object request{{"file", file.native()}, {"content", std::move(content)}};
    const auto saved = co_await asker_.ask_beside("record", "record", std::move(request), kRecord);
    co_return success_of(saved);
  }

  asio::awaitable<Result<>> remove(std::filesystem::path file) {
    json::object request{{"file", file.native()}};
    const auto removed = co_await asker_.ask_beside("record", "forget", std::move(request), kRecord);
    co_return success_of(removed);
  }

  std::filesystem::path file_of(Record kind) const {
    static constexpr std::array kEnds = {".history.json",  ".addresses.json",   ".held.json",
                                         ".to-write.json", ".late-writes.json", ".renamed.json"};
    // The configuration refuses volumes whose records would have one name.
    static_assert(std::ranges::all_of(kEnds, [](std::string_view end) {
      return std::ranges::find(config::kVolumeRecords, end.substr(0, end.rfind('.'))) !=
             config::kVolumeRecords.end();
    }));
    return base_ + kEnds.at(static_cast<std::size_t>(kind));
  }

  bool is_leaving() const { return ::access(leaving_file_.c_str(), F_OK) == 0; }

  Asker& asker_;
  std::string base_;  // of the files' names
  std::filesystem::path pin_file_, intent_file_, leaving_file_;
  Result<FilesystemIdentity> pinned_;
};

}  // namespace spark::volumes
