#include "csi/server/options.hpp"

#include <getopt.h>
#include <sys/un.h>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/client/client.hpp"
#include "csi/publication.hpp"

namespace spark::csi {
namespace {

constexpr char kHint[] = "see spark-stage-csi --help";

Result<> check(const Options& options) {
  if (options.node_id.empty() || options.node_id.size() > 256)
    return fail(Errc::Invalid, "--node-id is not a node's name of 1 to 256 bytes", kHint);
  if (!options.kubelet_dir.is_absolute())
    return fail(Errc::Invalid,
                "--kubelet-dir " + printable(options.kubelet_dir.native()) + " is not an absolute path",
                kHint);
  for (const auto& socket : {options.csi_socket(), options.registration_socket()}) {
    if (socket.native().size() < sizeof(sockaddr_un::sun_path)) continue;
    return fail(Errc::Invalid,
                "the path of the socket " + printable(socket.native()) +
                    " is longer than the kernel allows, " +
                    std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes",
                "give a shorter --kubelet-dir");
  }
  return {};
}

}  // namespace

const char kHelp[] =
    "Usage: spark-stage-csi [--socket PATH] [--kubelet-dir FOLDER] [--node-id NAME]\n"
    "                       [--log FORMAT]\n"
    "\n"
    "Gives pods of Kubernetes the datasets of this node's spark-staged, as inline\n"
    "volumes of the driver stage.spark-stage.io. Registers itself with kubelet.\n"
    "\n"
    "  --socket PATH         of spark-staged ($SPARK_STAGE_SOCKET, else\n"
    "                        /run/spark-stage/api.sock)\n"
    "  --kubelet-dir FOLDER  of this node's kubelet (/var/lib/kubelet)\n"
    "  --node-id NAME        of this node in the cluster ($NODE_NAME, else the host's\n"
    "                        name)\n"
    "  --log FORMAT          of its lines on stderr: text or json\n"
    "                        ($SPARK_STAGE_LOG, else text)\n"
    "  -h, --help            show this help\n"
    "  --version             this program's version\n"
    "\n"
    "Examples:\n"
    "  sudo systemctl start spark-stage-csi              on an ordinary host\n"
    "  spark-stage-csi --node-id \"$NODE_NAME\"            in a DaemonSet\n"
    "\n"
    "A pod asks for a dataset with\n"
    "  volumes: [{name: data, csi: {driver: stage.spark-stage.io,\n"
    "             volumeAttributes: {dataset: imagenet}}}]\n"
    "\n"
    "Mounts survive a stop or a crash. The log is on stderr.\n";

std::filesystem::path Options::csi_socket() const {
  return kubelet_dir / "plugins" / kDriver / "csi.sock";
}

std::filesystem::path Options::registration_socket() const {
  return kubelet_dir / "plugins_registry" / (std::string(kDriver) + "-reg.sock");
}

Result<Options> read_options(int argc, char** argv) {
  enum Choice { Socket = 1, Kubelet, NodeId, Log, Version, Help = 'h' };
  const option known[] = {{"socket", required_argument, nullptr, Socket},
                          {"kubelet-dir", required_argument, nullptr, Kubelet},
                          {"node-id", required_argument, nullptr, NodeId},
                          {"log", required_argument, nullptr, Log},
                          {"version", no_argument, nullptr, Version},
                          {"help", no_argument, nullptr, Help},
                          {}};
  Options options;
  options.socket = environment("SPARK_STAGE_SOCKET");
  options.node_id = environment("NODE_NAME");
  if (options.socket.empty()) options.socket = cli::kDefaultSocket;
  if (options.node_id.empty()) options.node_id = host_name();
  std::string log = environment("SPARK_STAGE_LOG");
  opterr = 0;  // getopt prints nothing; the error message is our own
  for (int choice; (choice = ::getopt_long(argc, argv, "h", known, nullptr)) != -1;) {
    switch (choice) {
      case Socket:
        options.socket = optarg;
        break;
      case Kubelet:
        options.kubelet_dir = std::filesystem::path(optarg).lexically_normal();
        break;
      case NodeId:
        options.node_id = optarg;
        break;
      case Log:
        log = optarg;
        break;
      case Version:
        options.shows_version = true;
        return options;
      case Help:
        options.shows_help = true;
        return options;
      default:
        return fail(Errc::Invalid, "'" + printable(argv[optind - 1]) + "' is no option, or lacks its value",
                    kHint);
    }
  }
  if (optind < argc) return fail(Errc::Invalid, "'" + printable(argv[optind]) + "' is no option", kHint);
  if (!log.empty() && log != "text" && log != "json")
    return fail(Errc::Invalid, "--log " + printable(log) + " is neither text nor json", kHint);
  options.logs_json = log == "json";
  if (auto valid = check(options); !valid) return valid.take_error();
  return options;
}

}  // namespace spark::csi
