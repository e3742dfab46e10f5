// Converts kubelet's calls from gRPC to Node and back.
#pragma once

#include <csi.grpc.pb.h>
#include <registration.grpc.pb.h>

#include <functional>
#include <string>

#include "csi/daemon.hpp"
#include "csi/node.hpp"

namespace spark::csi {

class IdentityService final : public ::csi::v1::Identity::Service {
 public:
  explicit IdentityService(Daemon& daemon) : daemon_(daemon) {}
  grpc::Status GetPluginInfo(grpc::ServerContext* context, const ::csi::v1::GetPluginInfoRequest* request,
                             ::csi::v1::GetPluginInfoResponse* answer) override;
  grpc::Status GetPluginCapabilities(grpc::ServerContext* context,
                                     const ::csi::v1::GetPluginCapabilitiesRequest* request,
                                     ::csi::v1::GetPluginCapabilitiesResponse* answer) override;
  grpc::Status Probe(grpc::ServerContext* context, const ::csi::v1::ProbeRequest* request,
                     ::csi::v1::ProbeResponse* answer) override;

 private:
  Daemon& daemon_;
};

class NodeService final : public ::csi::v1::Node::Service {
 public:
  // `stop` ends waiting calls when it is set.
  NodeService(Node& node, std::string node_id, const StopFlag& stop)
      : node_(node), node_id_(std::move(node_id)), stop_(stop) {}
  grpc::Status NodePublishVolume(grpc::ServerContext* context,
                                 const ::csi::v1::NodePublishVolumeRequest* request,
                                 ::csi::v1::NodePublishVolumeResponse* answer) override;
  grpc::Status NodeUnpublishVolume(grpc::ServerContext* context,
                                   const ::csi::v1::NodeUnpublishVolumeRequest* request,
                                   ::csi::v1::NodeUnpublishVolumeResponse* answer) override;
  grpc::Status NodeGetVolumeStats(grpc::ServerContext* context,
                                  const ::csi::v1::NodeGetVolumeStatsRequest* request,
                                  ::csi::v1::NodeGetVolumeStatsResponse* answer) override;
  grpc::Status NodeGetCapabilities(grpc::ServerContext* context,
                                   const ::csi::v1::NodeGetCapabilitiesRequest* request,
                                   ::csi::v1::NodeGetCapabilitiesResponse* answer) override;
  grpc::Status NodeGetInfo(grpc::ServerContext* context, const ::csi::v1::NodeGetInfoRequest* request,
                           ::csi::v1::NodeGetInfoResponse* answer) override;

 private:
  Call call_of(const grpc::ServerContext& context) const;

  Node& node_;
  const std::string node_id_;
  const StopFlag& stop_;
};

class RegistrationService final : public ::pluginregistration::Registration::Service {
 public:
  // `refused` is called with the reason if kubelet rejects the driver.
  RegistrationService(std::string endpoint, std::function<void(const std::string&)> say,
                      std::function<void(const std::string&)> refused)
      : endpoint_(std::move(endpoint)), say_(std::move(say)), refused_(std::move(refused)) {}
  grpc::Status GetInfo(grpc::ServerContext* context, const ::pluginregistration::InfoRequest* request,
                       ::pluginregistration::PluginInfo* answer) override;
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext* context,
                                        const ::pluginregistration::RegistrationStatus* request,
                                        ::pluginregistration::RegistrationStatusResponse* answer) override;

 private:
  const std::string endpoint_;
  std::function<void(const std::string&)> say_, refused_;
};

}  // namespace spark::csi
