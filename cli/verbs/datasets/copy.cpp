#include <algorithm>

#include "base/text.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/view/progress_view.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

struct CopyArguments {
  std::string source, destination, io = "auto", links = "keep";
  staging::CopyOptions options;
  bool accept_source = false, as_json = false;
};

json::object to_json(const staging::CopyReport& report, const std::string& name, const std::string& path) {
  const Bytes kept = report.resumed_bytes + report.unchanged_bytes;
  const double copied = static_cast<double>(report.bytes - std::min(report.bytes, kept));
  return {{"name", name},
          {"state", "ready"},
          {"path", path},
          {"served_from", report.unchanged ? "cache" : "copied"},
          {"bytes", report.bytes},
          {"files", report.files},
          {"seconds", report.seconds},
          {"bytes_per_second", report.seconds > 0 ? copied / report.seconds : 0},
          {"hash", report.hash},
          {"memfree_drop_bytes", report.memfree_drop_bytes},
          {"resumed_bytes", report.resumed_bytes},
          {"unchanged_bytes", report.unchanged_bytes},
          {"sha256_files", report.sha256_files},
          {"outside_links", report.outside_links},
          {"copied_links", report.copied_links}};
}

staging::CopyOptions options_of(const CopyArguments& arguments) {
  staging::CopyOptions options = arguments.options;
  options.links = arguments.links == "copy"     ? staging::OutsideLinks::Copy
                  : arguments.links == "refuse" ? staging::OutsideLinks::Refuse
                                                : staging::OutsideLinks::Keep;
  options.replaces = arguments.accept_source ? staging::Replaces::Anything : staging::Replaces::SameSource;
  options.io = arguments.io == "threads"    ? staging::IoKind::Threads
               : arguments.io == "io_uring" ? staging::IoKind::Uring
                                            : staging::IoKind::Auto;
  return options;
}

// Absolute and without a slash at its end. A ".." is resolved as the kernel does it: behind a symlink it is
// not the folder that holds the link. Without one the path keeps the names that it was given.
Result<std::filesystem::path> as_the_kernel_resolves(const std::string& text) {
  auto path = absolute_path(text);
  if (!path) return path;
  std::error_code error;
  *path = std::filesystem::absolute(text, error);
  const bool goes_up = std::ranges::find(*path, "..") != path->end();
  if (!goes_up) *path = path->lexically_normal();
  while (!path->has_filename() && path->has_relative_path()) *path = path->parent_path();
  if (!goes_up) return path;
  const auto folder = std::filesystem::canonical(path->parent_path(), error);
  return error ? *path : folder / path->filename();
}

// A source that is not there is often a volume that is not mounted.
tl::unexpected<Error> fail_with_next_step(Error error, const std::string& source) {
  std::error_code ignored;
  if (error.kind == Errc::NotFound && error.hint.empty() && !std::filesystem::exists(source, ignored)) {
    const auto folder = as_the_kernel_resolves(source).value_or(source).parent_path();
    error.hint = "is its volume mounted? `spark-stage status` says; `ls " + printable(folder.string()) +
                 "` lists the folder";
  }
  return fail(std::move(error));
}

Result<int> copy(Context& context, const CopyArguments& arguments) {
  const staging::CopyOptions options = options_of(arguments);
  const auto named = as_the_kernel_resolves(arguments.destination);
  if (!named) return named.take_error();
  const std::string name = named->filename().string();

  context.catch_interrupts();
  ProgressView view(context.err, context.terminal, context.timer);
  const auto show = [&](const staging::CopyProgress& now) {
    view.update({name, to_string(now.phase), now.bytes_done, now.bytes_total, now.files_done, now.files_total,
                 static_cast<double>(now.bytes_per_second), now.eta_s, now.bottleneck, ""});
  };
  const auto report = context.copy(arguments.source, *named, options, show, context.stop);
  if (!report && report.error().kind == Errc::Cancelled) {
    return fail(Errc::Cancelled, "interrupted", "finished parts stay, the same command resumes");
  }
  if (!report) return fail_with_next_step(report.error(), arguments.source);
  view.clear();
  if (!report->skipped.empty()) view.note("spark-stage: " + skipped_in_words(report->skipped));
  for (const std::string& warning : report->warnings) view.note("spark-stage: " + printable(warning));
  const json::object answer = to_json(*report, name, named->string());
  if (arguments.as_json) return show_json(context, answer);
  const std::string words = report->unchanged ? "an equal copy is there already" : staged_in_words(answer);
  say(context, printable(named->string()) + ": " + words);
  if (options.sha256) say(context, counted(report->sha256_files, "file") + " as published (SHA-256)");
  return 0;
}

}  // namespace

void add_copy(App& app) {
  const auto arguments = std::make_shared<CopyArguments>();
  Verb verb = app.verb("copy", "copy a file or folder, hashed and resumable (no daemon)",
                       "  spark-stage copy /mnt/nas/imagenet /data/imagenet\n"
                       "  spark-stage copy /mnt/nas/imagenet /data/imagenet --verify --max-rate 1.5GB/s\n"
                       "  spark-stage copy /mnt/nas/models /data/models --exclude '*.tmp'\n\n"
                       "DEST is the copy's own name, not the folder around it. It appears there whole,\n"
                       "or not at all; ^C keeps finished parts, and the same command resumes from them.",
                       [arguments](Context& context) { return copy(context, *arguments); });
  staging::CopyOptions& options = arguments->options;
  verb.argument("SOURCE", arguments->source, "a file or folder");
  verb.argument("DEST", arguments->destination, "the name of the copy");
  verb.flag("--verify", options.verify, "read it back from the disk before it is published");
  verb.flag("--sha256", options.sha256, "check SHA256SUMS and Hugging Face digests in SOURCE");
  verb.flag("--accept-source", arguments->accept_source,
            "also if now empty, on another drive, or another source");
  verb.parsed("--max-rate", "RATE", options.rate.most, parse_rate_with_unit,
              "bytes per second at most: 800MB/s");
  verb.option("--exclude", "PATTERN", options.exclude, "leave out matching names; may be repeated");
  verb.choice("--links", "KIND", arguments->links, {"keep", "copy", "refuse"},
              "links out of SOURCE: keep, copy their targets, refuse");
  verb.count("--threads", options.threads, {1, 256}, "for small files (adapted to the measured rate)");
  verb.count("--depth", options.depth, {1, 256}, "requests under way for large files; from the CPUs");
  verb.parsed("--chunk", "SIZE", options.chunk, parse_bytes, "of one request, up to 8MiB (4MiB)");
  verb.choice("--io", "KIND", arguments->io, {"auto", "io_uring", "threads"}, "auto, io_uring or threads");
  verb.flag("--json", arguments->as_json, "the result, as JSON");
}

}  // namespace spark::cli
