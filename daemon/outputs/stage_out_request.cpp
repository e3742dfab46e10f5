#include "daemon/outputs/stage_out_request.hpp"

#include <sys/types.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "base/text.hpp"

namespace spark::outputs {
namespace {

constexpr std::int64_t kMostNodes = 10'000;
constexpr std::size_t kLongestPath = 4096, kLongestAttempt = 256;
constexpr std::int64_t kMostKept = 1 << 20;

Result<> read_limits(const json::object& body, StageOutRequest& wanted) {
  const auto keep = get_int(body, "keep");
  if (body.contains("keep") && (!keep || *keep < 1 || *keep > kMostKept))
    return fail(Errc::Invalid, "keep is not a number of copies", "1 keeps the newest alone");
  wanted.keep = static_cast<unsigned>(keep.value_or(0));
  const auto nodes = get_int(body, "nodes");
  if (body.contains("nodes") && (!nodes || *nodes < 1 || *nodes > kMostNodes))
    return fail(Errc::Invalid, "nodes is not a number of hosts");
  wanted.nodes = static_cast<unsigned>(nodes.value_or(0));
  const auto rate = get_int(body, "max_rate");
  if (body.contains("max_rate") && (!rate || *rate <= 0))
    return fail(Errc::Invalid, "max_rate is not a rate in bytes per second");
  wanted.max_rate = static_cast<Bytes>(rate.value_or(0));
  wanted.accept_source = get_bool(body, "accept_source").value_or(false);
  wanted.attempt = get_text(body, "attempt");
  if (wanted.attempt.size() > kLongestAttempt)
    return fail(Errc::Invalid, "attempt is longer than " + std::to_string(kLongestAttempt) + " bytes");
  return {};
}

}  // namespace

Result<OutputName> read_output_name(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::vector<std::string> parts;
  for (std::string& part : split(colon == std::string::npos ? "" : text.substr(colon + 1), '/')) {
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  const bool is_valid = colon != 0 && !parts.empty() && text.size() <= kLongestPath &&
                        text.find('\0') == std::string::npos && std::ranges::find(parts, "..") == parts.end();
  if (!is_valid) {
    return fail(Errc::Invalid, "'" + printable(text) + "' is not VOLUME:PATH of an output",
                "for example: checkpoints:run7/step-1000");
  }
  if (parts.back().starts_with('.')) {
    return fail(Errc::Invalid, "the name of '" + printable(text) + "' begins with a dot",
                "choose another name: spark-stage keeps its own files under such names");
  }
  return OutputName{text.substr(0, colon), join(parts, "/")};
}

Result<StageOutRequest> request_of(const json::object& body) {
  StageOutRequest wanted;
  wanted.source = get_text(body, "source");
  const bool is_path = wanted.source.starts_with('/') && wanted.source.size() <= kLongestPath &&
                       wanted.source.find('\0') == std::string::npos;
  if (!is_path) {
    return fail(Errc::Invalid, "source is not an absolute path",
                "name the file or folder that is to be sent");
  }
  auto name = read_output_name(get_text(body, "destination"));
  if (!name) return name.take_error();
  wanted.volume = std::move(name->volume);
  wanted.path = std::move(name->path);
  if (auto read = read_limits(body, wanted); !read) return read.take_error();
  const auto accepted = read_accepted(body);
  if (!accepted) return fail(accepted.error());
  wanted.is_repeated = accepted->has_value();
  if (*accepted) wanted.written = (*accepted)->written;
  return wanted;
}

json::object accepted_of(const StageOutRequest& request) {
  json::object accepted{{"written", std::to_string(request.written.value_or(0))}};
  if (!request.rule.empty()) accepted["checkpoint"] = std::filesystem::path(request.path).filename().native();
  return accepted;
}

Result<std::optional<Accepted>> read_accepted(const json::object& body) {
  if (!body.contains("written") && !body.contains("checkpoint")) return std::optional<Accepted>();
  Accepted accepted{get_text(body, "checkpoint"), 0};
  const std::string text = get_text(body, "written");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), accepted.written);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  const bool is_name = accepted.checkpoint.find('/') == std::string::npos &&
                       !accepted.checkpoint.starts_with('.') && accepted.checkpoint.size() <= kLongestPath &&
                       accepted.checkpoint.find('\0') == std::string::npos;
  if (is_number && is_name) return std::optional(std::move(accepted));
  return fail(Errc::Invalid, "written, or checkpoint, is not what the job of the first request has",
              "repeat the members of its `accepted` as they are");
}

std::string StageOutRequest::doing() const {
  return "sending " + printable(source) + " to " + printable(destination());
}

std::string StageOutRequest::folder() const {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Keep keep_of(const StageOutRequest& request, const config::Config& config) {
  if (request.rule.empty()) return {request.keep, 0};
  const auto found = std::ranges::find_if(config.outputs, [&](const auto& one) {
    return one.second.volume == request.volume && one.second.to == request.folder();
  });
  return found == config.outputs.end() ? Keep{} : Keep{found->second.keep, found->second.keep_every};
}

bool StageOutRequest::is_same(const StageOutRequest& other) const {
  const bool is_held = !rule.empty() && written;  // maybe, in one of the two: it is known by its state
  return (source == other.source || is_held) && volume == other.volume && path == other.path &&
         keep == other.keep && nodes == other.nodes && marker == other.marker && rule == other.rule &&
         max_rate == other.max_rate && written == other.written && attempt == other.attempt &&
         asker.uid == other.asker.uid;
}

bool StageOutRequest::is_later_than(const StageOutRequest& earlier) const {
  return rule.empty() && earlier.rule.empty() && source == earlier.source && asker.uid == earlier.asker.uid &&
         written && earlier.written && (written != earlier.written || attempt != earlier.attempt);
}

bool StageOutRequest::is_outdated_by(const StageOutRequest& other) const {
  const bool is_of_same = rule == other.rule && (!rule.empty() || source == other.source);
  return is_repeated && is_of_same && written && other.written && asker.uid == other.asker.uid &&
         (written != other.written || attempt != other.attempt);
}

bool lacks_shards(const json::object& answer) {
  return get_string(answer, "state") == "waiting";
}

std::string missing_shards(const json::object& answer, unsigned nodes) {
  auto names = get_strings(answer, "hosts");
  for (std::string& name : names) name = printable(name);
  auto others = get_strings(answer, "other_attempts");
  for (std::string& name : others) name = printable(name);
  return "it is published when the shards of " + std::to_string(nodes) + " hosts are there; so far " +
         (names.empty() ? "another host publishes them" : "they are of " + join(names, ", ")) +
         (others.empty() ? "" : "; those of " + join(others, ", ") + " are of another attempt of the job");
}

json::object to_json(const StageOutRequest& request) {
  json::object record = to_message<SendingRecord>(request);
  record["uid"] = request.asker.uid;
  record["holder"] = request.asker.holder;
  return record;
}

Result<StageOutRequest> request_from_json(const json::object& object) {
  StageOutRequest request;
  read_present<SendingRecord>(object, request);
  const auto uid = get_int(object, "uid");
  const bool has_all = !request.id.empty() && request.source.starts_with('/') && !request.volume.empty() &&
                       !request.path.empty();
  // Without a user the copy would be made with root's permissions.
  if (!has_all || !uid || *uid < 0 || *uid > std::numeric_limits<uid_t>::max())
    return fail(Errc::Invalid, "it is no record of a stage-out");
  request.asker.uid = static_cast<uid_t>(*uid);
  request.asker.holder = get_text(object, "holder");
  // Records of version 0.2 have the kind of the pointer, and `changed_ns` in place of `written`. Those
  // without `attempt` have 0 for a state that was not read.
  const std::string pointer = get_text(object, "latest");
  if (request.rule.empty() && !pointer.empty()) request.rule = pointer == "file" ? "deepspeed" : "rename";
  if (!object.contains("attempt") && request.written.value_or(0) == 0)
    request.written = get_int(object, "changed_ns");
  if (!object.contains("attempt") && request.written == 0) request.written.reset();
  return request;
}

}  // namespace spark::outputs
