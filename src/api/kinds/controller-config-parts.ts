/** Written by hack/openshift-kinds.ts. Source: openshift/api 2a3d73913b5a. */
export const controllerConfigParts: Readonly<Record<"infra" | "dns" | "proxy" | "network", object>> = {
  infra: {
    nullable: true,
    properties: {
      apiVersion: {
        type: "string",
      },
      kind: {
        type: "string",
      },
      metadata: {
        type: "object",
      },
      spec: {
        properties: {
          cloudConfig: {
            properties: {
              key: {
                type: "string",
              },
              name: {
                type: "string",
              },
            },
            type: "object",
          },
          controlPlaneTopology: {
            enum: ["HighlyAvailable", "SingleReplica"],
            type: "string",
          },
          platformSpec: {
            properties: {
              alibabaCloud: {
                type: "object",
              },
              aws: {
                properties: {
                  serviceEndpoints: {
                    items: {
                      properties: {
                        name: {
                          pattern: "^[a-z0-9-]+$",
                          type: "string",
                        },
                        url: {
                          pattern: "^https://",
                          type: "string",
                        },
                      },
                      type: "object",
                    },
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                  },
                },
                type: "object",
              },
              azure: {
                type: "object",
              },
              baremetal: {
                properties: {
                  apiServerInternalIPs: {
                    items: {
                      maxLength: 39,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isIP(self)",
                          message: "must be an IP address",
                        },
                      ],
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  ingressIPs: {
                    items: {
                      maxLength: 39,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isIP(self)",
                          message: "must be an IP address",
                        },
                      ],
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  machineNetworks: {
                    items: {
                      maxLength: 43,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isCIDR(self)",
                          message: "must be a network, such as 10.0.0.0/16",
                        },
                      ],
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, self.exists_one(y, x == y))",
                        message: "each entry must be there once",
                      },
                    ],
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(oldSelf.apiServerInternalIPs) || has(self.apiServerInternalIPs)",
                    message: "apiServerInternalIPs must not be removed once it is set",
                  },
                  {
                    rule: "!has(oldSelf.ingressIPs) || has(self.ingressIPs)",
                    message: "ingressIPs must not be removed once it is set",
                  },
                ],
              },
              equinixMetal: {
                type: "object",
              },
              external: {
                properties: {
                  platformName: {
                    default: "Unknown",
                    type: "string",
                    "x-kubernetes-validations": [
                      {
                        rule: "oldSelf == 'Unknown' || self == oldSelf",
                        message: "must not change once it is set",
                      },
                    ],
                  },
                },
                type: "object",
              },
              gcp: {
                type: "object",
              },
              ibmcloud: {
                properties: {
                  serviceEndpoints: {
                    items: {
                      properties: {
                        name: {
                          enum: [
                            "CIS",
                            "COS",
                            "COSConfig",
                            "DNSServices",
                            "GlobalCatalog",
                            "GlobalSearch",
                            "GlobalTagging",
                            "HyperProtect",
                            "IAM",
                            "KeyProtect",
                            "ResourceController",
                            "ResourceManager",
                            "VPC",
                          ],
                          type: "string",
                        },
                        url: {
                          maxLength: 300,
                          type: "string",
                          "x-kubernetes-validations": [
                            {
                              rule: 'url(self).getScheme() == "https"',
                              message: "must be a URL of https",
                            },
                            {
                              rule: "matches((url(self).getEscapedPath()), '^/(api/)?v[0-9]+/{0,1}$')",
                              message: "the path of the URL must be /v and a number, or /api/v and a number",
                            },
                            {
                              rule: "isURL(self)",
                              message: "must be a URL",
                            },
                          ],
                        },
                      },
                      required: ["name", "url"],
                      type: "object",
                    },
                    maxItems: 13,
                    type: "array",
                    "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-list-type": "map",
                  },
                },
                type: "object",
              },
              kubevirt: {
                type: "object",
              },
              nutanix: {
                properties: {
                  failureDomains: {
                    items: {
                      properties: {
                        cluster: {
                          properties: {
                            name: {
                              type: "string",
                            },
                            type: {
                              enum: ["UUID", "Name"],
                              type: "string",
                            },
                            uuid: {
                              type: "string",
                            },
                          },
                          required: ["type"],
                          type: "object",
                          "x-kubernetes-validations": [
                            {
                              rule: "has(self.type) && self.type == 'UUID' ?  has(self.uuid) : !has(self.uuid)",
                              message: "uuid goes with type UUID, and only with it",
                            },
                            {
                              rule: "has(self.type) && self.type == 'Name' ?  has(self.name) : !has(self.name)",
                              message: "name goes with type Name, and only with it",
                            },
                          ],
                        },
                        name: {
                          maxLength: 64,
                          minLength: 1,
                          pattern: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
                          type: "string",
                        },
                        subnets: {
                          items: {
                            properties: {
                              name: {
                                type: "string",
                              },
                              type: {
                                enum: ["UUID", "Name"],
                                type: "string",
                              },
                              uuid: {
                                type: "string",
                              },
                            },
                            required: ["type"],
                            type: "object",
                            "x-kubernetes-validations": [
                              {
                                rule: "has(self.type) && self.type == 'UUID' ?  has(self.uuid) : !has(self.uuid)",
                                message: "uuid goes with type UUID, and only with it",
                              },
                              {
                                rule: "has(self.type) && self.type == 'Name' ?  has(self.name) : !has(self.name)",
                                message: "name goes with type Name, and only with it",
                              },
                            ],
                          },
                          maxItems: 32,
                          minItems: 1,
                          type: "array",
                          "x-kubernetes-list-type": "atomic",
                          "x-kubernetes-validations": [
                            {
                              rule: "self.all(x, self.exists_one(y, x == y))",
                              message: "each entry must be there once",
                            },
                          ],
                        },
                      },
                      required: ["cluster", "name", "subnets"],
                      type: "object",
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-list-type": "map",
                  },
                  prismCentral: {
                    properties: {
                      address: {
                        maxLength: 256,
                        type: "string",
                      },
                      port: {
                        format: "int32",
                        maximum: 65535,
                        minimum: 1,
                        type: "integer",
                      },
                    },
                    required: ["address", "port"],
                    type: "object",
                  },
                  prismElements: {
                    items: {
                      properties: {
                        endpoint: {
                          properties: {
                            address: {
                              maxLength: 256,
                              type: "string",
                            },
                            port: {
                              format: "int32",
                              maximum: 65535,
                              minimum: 1,
                              type: "integer",
                            },
                          },
                          required: ["address", "port"],
                          type: "object",
                        },
                        name: {
                          maxLength: 256,
                          type: "string",
                        },
                      },
                      required: ["endpoint", "name"],
                      type: "object",
                    },
                    type: "array",
                    "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-list-type": "map",
                  },
                },
                required: ["prismCentral", "prismElements"],
                type: "object",
              },
              openstack: {
                properties: {
                  apiServerInternalIPs: {
                    items: {
                      maxLength: 39,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isIP(self)",
                          message: "must be an IP address",
                        },
                      ],
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  ingressIPs: {
                    items: {
                      maxLength: 39,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isIP(self)",
                          message: "must be an IP address",
                        },
                      ],
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  machineNetworks: {
                    items: {
                      maxLength: 43,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isCIDR(self)",
                          message: "must be a network, such as 10.0.0.0/16",
                        },
                      ],
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, self.exists_one(y, x == y))",
                        message: "each entry must be there once",
                      },
                    ],
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(oldSelf.apiServerInternalIPs) || has(self.apiServerInternalIPs)",
                    message: "apiServerInternalIPs must not be removed once it is set",
                  },
                  {
                    rule: "!has(oldSelf.ingressIPs) || has(self.ingressIPs)",
                    message: "ingressIPs must not be removed once it is set",
                  },
                ],
              },
              ovirt: {
                type: "object",
              },
              powervs: {
                properties: {
                  serviceEndpoints: {
                    items: {
                      properties: {
                        name: {
                          enum: [
                            "CIS",
                            "COS",
                            "COSConfig",
                            "DNSServices",
                            "GlobalCatalog",
                            "GlobalSearch",
                            "GlobalTagging",
                            "HyperProtect",
                            "IAM",
                            "KeyProtect",
                            "Power",
                            "ResourceController",
                            "ResourceManager",
                            "VPC",
                          ],
                          type: "string",
                        },
                        url: {
                          format: "uri",
                          pattern: "^https://",
                          type: "string",
                        },
                      },
                      required: ["name", "url"],
                      type: "object",
                    },
                    type: "array",
                    "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-list-type": "map",
                  },
                },
                type: "object",
              },
              type: {
                enum: [
                  "",
                  "AWS",
                  "Azure",
                  "BareMetal",
                  "GCP",
                  "Libvirt",
                  "OpenStack",
                  "None",
                  "VSphere",
                  "oVirt",
                  "IBMCloud",
                  "KubeVirt",
                  "EquinixMetal",
                  "PowerVS",
                  "AlibabaCloud",
                  "Nutanix",
                  "External",
                ],
                type: "string",
              },
              vsphere: {
                properties: {
                  apiServerInternalIPs: {
                    items: {
                      maxLength: 39,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isIP(self)",
                          message: "must be an IP address",
                        },
                      ],
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  failureDomains: {
                    items: {
                      properties: {
                        name: {
                          maxLength: 256,
                          minLength: 1,
                          type: "string",
                        },
                        region: {
                          maxLength: 80,
                          minLength: 1,
                          type: "string",
                        },
                        regionAffinity: {
                          properties: {
                            type: {
                              enum: ["ComputeCluster", "Datacenter"],
                              type: "string",
                            },
                          },
                          required: ["type"],
                          type: "object",
                        },
                        server: {
                          maxLength: 255,
                          minLength: 1,
                          type: "string",
                        },
                        topology: {
                          properties: {
                            computeCluster: {
                              maxLength: 2048,
                              pattern: "^/.*?/host/.*?",
                              type: "string",
                            },
                            datacenter: {
                              maxLength: 80,
                              type: "string",
                            },
                            datastore: {
                              maxLength: 2048,
                              pattern: "^/.*?/datastore/.*?",
                              type: "string",
                            },
                            folder: {
                              maxLength: 2048,
                              pattern: "^/.*?/vm/.*?",
                              type: "string",
                            },
                            networks: {
                              items: {
                                type: "string",
                              },
                              maxItems: 10,
                              minItems: 1,
                              type: "array",
                              "x-kubernetes-list-type": "atomic",
                            },
                            resourcePool: {
                              maxLength: 2048,
                              pattern: "^/.*?/host/.*?/Resources.*",
                              type: "string",
                            },
                            template: {
                              maxLength: 2048,
                              minLength: 1,
                              pattern: "^/.*?/vm/.*?",
                              type: "string",
                            },
                          },
                          required: ["computeCluster", "datacenter", "datastore", "networks"],
                          type: "object",
                        },
                        zone: {
                          maxLength: 80,
                          minLength: 1,
                          type: "string",
                        },
                        zoneAffinity: {
                          properties: {
                            hostGroup: {
                              properties: {
                                hostGroup: {
                                  maxLength: 80,
                                  minLength: 1,
                                  type: "string",
                                },
                                vmGroup: {
                                  maxLength: 80,
                                  minLength: 1,
                                  type: "string",
                                },
                                vmHostRule: {
                                  maxLength: 80,
                                  minLength: 1,
                                  type: "string",
                                },
                              },
                              required: ["hostGroup", "vmGroup", "vmHostRule"],
                              type: "object",
                            },
                            type: {
                              enum: ["HostGroup", "ComputeCluster"],
                              type: "string",
                            },
                          },
                          required: ["type"],
                          type: "object",
                          "x-kubernetes-validations": [
                            {
                              rule: "has(self.type) && self.type == 'HostGroup' ?  has(self.hostGroup) : !has(self.hostGroup)",
                              message: "hostGroup goes with type HostGroup, and only with it",
                            },
                          ],
                        },
                      },
                      required: ["name", "region", "server", "topology", "zone"],
                      type: "object",
                      "x-kubernetes-validations": [
                        {
                          rule: "has(self.zoneAffinity) && self.zoneAffinity.type == 'HostGroup' ?  has(self.regionAffinity) && self.regionAffinity.type == 'ComputeCluster' : true",
                          message: "a zone of type HostGroup needs a region of type ComputeCluster",
                        },
                        {
                          rule: "has(self.zoneAffinity) && self.zoneAffinity.type == 'ComputeCluster' ?  has(self.regionAffinity) && self.regionAffinity.type == 'Datacenter' : true",
                          message: "a zone of type ComputeCluster needs a region of type Datacenter",
                        },
                      ],
                    },
                    type: "array",
                    "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-list-type": "map",
                  },
                  ingressIPs: {
                    items: {
                      maxLength: 39,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isIP(self)",
                          message: "must be an IP address",
                        },
                      ],
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  machineNetworks: {
                    items: {
                      maxLength: 43,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isCIDR(self)",
                          message: "must be a network, such as 10.0.0.0/16",
                        },
                      ],
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, self.exists_one(y, x == y))",
                        message: "each entry must be there once",
                      },
                    ],
                  },
                  nodeNetworking: {
                    properties: {
                      external: {
                        properties: {
                          excludeNetworkSubnetCidr: {
                            items: {
                              type: "string",
                            },
                            type: "array",
                            "x-kubernetes-list-type": "atomic",
                          },
                          network: {
                            type: "string",
                          },
                          networkSubnetCidr: {
                            items: {
                              type: "string",
                            },
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                        },
                        type: "object",
                      },
                      internal: {
                        properties: {
                          excludeNetworkSubnetCidr: {
                            items: {
                              type: "string",
                            },
                            type: "array",
                            "x-kubernetes-list-type": "atomic",
                          },
                          network: {
                            type: "string",
                          },
                          networkSubnetCidr: {
                            items: {
                              type: "string",
                            },
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                        },
                        type: "object",
                      },
                    },
                    type: "object",
                  },
                  vcenters: {
                    items: {
                      properties: {
                        datacenters: {
                          items: {
                            type: "string",
                          },
                          minItems: 1,
                          type: "array",
                          "x-kubernetes-list-type": "set",
                        },
                        port: {
                          format: "int32",
                          maximum: 32767,
                          minimum: 1,
                          type: "integer",
                        },
                        server: {
                          maxLength: 255,
                          type: "string",
                        },
                      },
                      required: ["datacenters", "server"],
                      type: "object",
                    },
                    maxItems: 3,
                    minItems: 1,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "size(self) >= size(oldSelf) ? oldSelf.all(x, self.exists(y, y.server == x.server)) : true",
                        message: "vCenters must not be added and removed in one change",
                      },
                      {
                        rule: "size(self) < size(oldSelf) ? self.all(x, oldSelf.exists(y, y.server == x.server)) : true",
                        message: "vCenters must not be added and removed in one change",
                      },
                      {
                        rule: "self.all(x, self.exists_one(y, y.server == x.server))",
                        message: "each vCenter must have a server of its own",
                      },
                    ],
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.failureDomains) || size(self.failureDomains) == 0 || (has(self.vcenters) && self.failureDomains.all(fd, self.vcenters.exists(vc, vc.server == fd.server)))",
                    message: "each failure domain must name the server of one of vcenters",
                  },
                  {
                    rule: "!has(oldSelf.apiServerInternalIPs) || has(self.apiServerInternalIPs)",
                    message: "apiServerInternalIPs must not be removed once it is set",
                  },
                  {
                    rule: "!has(oldSelf.ingressIPs) || has(self.ingressIPs)",
                    message: "ingressIPs must not be removed once it is set",
                  },
                ],
              },
            },
            type: "object",
            "x-kubernetes-validations": [
              {
                rule: "oldSelf.?vsphere.vcenters.hasValue() ? self.?vsphere.vcenters.hasValue() : true",
                message: "vsphere.vcenters must not be removed once it is set",
              },
            ],
          },
        },
        type: "object",
      },
      status: {
        properties: {
          apiServerInternalURI: {
            type: "string",
          },
          apiServerURL: {
            type: "string",
          },
          controlPlaneTopology: {
            default: "HighlyAvailable",
            enum: ["HighlyAvailable", "HighlyAvailableArbiter", "SingleReplica", "DualReplica", "External"],
            type: "string",
          },
          cpuPartitioning: {
            default: "None",
            enum: ["None", "AllNodes"],
            type: "string",
          },
          etcdDiscoveryDomain: {
            type: "string",
          },
          infrastructureName: {
            type: "string",
          },
          infrastructureTopology: {
            default: "HighlyAvailable",
            enum: ["HighlyAvailable", "SingleReplica"],
            type: "string",
          },
          platform: {
            enum: [
              "",
              "AWS",
              "Azure",
              "BareMetal",
              "GCP",
              "Libvirt",
              "OpenStack",
              "None",
              "VSphere",
              "oVirt",
              "IBMCloud",
              "KubeVirt",
              "EquinixMetal",
              "PowerVS",
              "AlibabaCloud",
              "Nutanix",
              "External",
            ],
            type: "string",
          },
          platformStatus: {
            properties: {
              alibabaCloud: {
                properties: {
                  region: {
                    pattern: "^[0-9A-Za-z-]+$",
                    type: "string",
                  },
                  resourceGroupID: {
                    pattern: "^(rg-[0-9A-Za-z]+)?$",
                    type: "string",
                  },
                  resourceTags: {
                    items: {
                      properties: {
                        key: {
                          maxLength: 128,
                          minLength: 1,
                          type: "string",
                        },
                        value: {
                          maxLength: 128,
                          minLength: 1,
                          type: "string",
                        },
                      },
                      required: ["key", "value"],
                      type: "object",
                    },
                    maxItems: 20,
                    type: "array",
                    "x-kubernetes-list-map-keys": ["key"],
                    "x-kubernetes-list-type": "map",
                  },
                },
                required: ["region"],
                type: "object",
              },
              aws: {
                properties: {
                  cloudLoadBalancerConfig: {
                    default: {
                      dnsType: "PlatformDefault",
                    },
                    nullable: true,
                    properties: {
                      clusterHosted: {
                        properties: {
                          apiIntLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                          apiLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                          ingressLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                        },
                        type: "object",
                      },
                      dnsType: {
                        default: "PlatformDefault",
                        enum: ["ClusterHosted", "PlatformDefault"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                    "x-kubernetes-validations": [
                      {
                        rule: "has(self.dnsType) && self.dnsType != 'ClusterHosted' ? !has(self.clusterHosted) : true",
                        message: "clusterHosted goes with dnsType ClusterHosted, and only with it",
                      },
                    ],
                  },
                  ipFamily: {
                    default: "IPv4",
                    enum: ["IPv4", "DualStackIPv6Primary", "DualStackIPv4Primary"],
                    type: "string",
                    "x-kubernetes-validations": [
                      {
                        rule: "oldSelf == '' || self == oldSelf",
                        message: "must not change once it is set",
                      },
                    ],
                  },
                  region: {
                    type: "string",
                  },
                  resourceTags: {
                    items: {
                      properties: {
                        key: {
                          maxLength: 128,
                          minLength: 1,
                          type: "string",
                          "x-kubernetes-validations": [
                            {
                              rule: "self.matches('^[0-9A-Za-z_.:/=+-@ ]+$')",
                              message: "must be made of letters, digits, spaces and _ . : / = + - @",
                            },
                          ],
                        },
                        value: {
                          maxLength: 256,
                          minLength: 1,
                          type: "string",
                          "x-kubernetes-validations": [
                            {
                              rule: "self.matches('^[0-9A-Za-z_.:/=+-@ ]+$')",
                              message: "must be made of letters, digits, spaces and _ . : / = + - @",
                            },
                          ],
                        },
                      },
                      required: ["key", "value"],
                      type: "object",
                    },
                    maxItems: 25,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                  },
                  serviceEndpoints: {
                    items: {
                      properties: {
                        name: {
                          pattern: "^[a-z0-9-]+$",
                          type: "string",
                        },
                        url: {
                          pattern: "^https://",
                          type: "string",
                        },
                      },
                      type: "object",
                    },
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                  },
                },
                type: "object",
              },
              azure: {
                properties: {
                  armEndpoint: {
                    type: "string",
                  },
                  cloudLoadBalancerConfig: {
                    default: {
                      dnsType: "PlatformDefault",
                    },
                    properties: {
                      clusterHosted: {
                        properties: {
                          apiIntLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                          apiLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                          ingressLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                        },
                        type: "object",
                      },
                      dnsType: {
                        default: "PlatformDefault",
                        enum: ["ClusterHosted", "PlatformDefault"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                    "x-kubernetes-validations": [
                      {
                        rule: "has(self.dnsType) && self.dnsType != 'ClusterHosted' ? !has(self.clusterHosted) : true",
                        message: "clusterHosted goes with dnsType ClusterHosted, and only with it",
                      },
                    ],
                  },
                  cloudName: {
                    enum: [
                      "",
                      "AzurePublicCloud",
                      "AzureUSGovernmentCloud",
                      "AzureChinaCloud",
                      "AzureGermanCloud",
                      "AzureStackCloud",
                      "AzureUSSecCloud",
                    ],
                    type: "string",
                  },
                  ipFamily: {
                    default: "IPv4",
                    enum: ["IPv4", "DualStackIPv6Primary", "DualStackIPv4Primary"],
                    type: "string",
                    "x-kubernetes-validations": [
                      {
                        rule: "oldSelf == '' || self == oldSelf",
                        message: "must not change once it is set",
                      },
                    ],
                  },
                  networkResourceGroupName: {
                    type: "string",
                  },
                  resourceGroupName: {
                    type: "string",
                  },
                  resourceTags: {
                    items: {
                      properties: {
                        key: {
                          maxLength: 128,
                          minLength: 1,
                          pattern: "^[a-zA-Z]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$",
                          type: "string",
                        },
                        value: {
                          maxLength: 256,
                          minLength: 1,
                          pattern: "^[0-9A-Za-z_.=+-@]+$",
                          type: "string",
                        },
                      },
                      required: ["key", "value"],
                      type: "object",
                    },
                    maxItems: 10,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, x in oldSelf) && oldSelf.all(x, x in self)",
                        message: "cannot change after installation",
                      },
                    ],
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(oldSelf.resourceTags) && !has(self.resourceTags) || has(oldSelf.resourceTags) && has(self.resourceTags)",
                    message: "resourceTags can be set at installation only",
                  },
                ],
              },
              baremetal: {
                properties: {
                  apiServerInternalIP: {
                    type: "string",
                  },
                  apiServerInternalIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  dnsRecordsType: {
                    enum: ["Internal", "External"],
                    type: "string",
                  },
                  ingressIP: {
                    type: "string",
                  },
                  ingressIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  loadBalancer: {
                    default: {
                      type: "OpenShiftManagedDefault",
                    },
                    properties: {
                      type: {
                        default: "OpenShiftManagedDefault",
                        enum: ["OpenShiftManagedDefault", "UserManaged"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                  },
                  machineNetworks: {
                    items: {
                      maxLength: 43,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isCIDR(self)",
                          message: "must be a network, such as 10.0.0.0/16",
                        },
                      ],
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, self.exists_one(y, x == y))",
                        message: "each entry must be there once",
                      },
                    ],
                  },
                  nodeDNSIP: {
                    type: "string",
                  },
                  vipManagement: {
                    enum: ["Keepalived", "BGP"],
                    type: "string",
                    "x-kubernetes-validations": [
                      {
                        rule: "oldSelf == '' || self == oldSelf",
                        message: "must not change once it is set",
                      },
                    ],
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.dnsRecordsType) || self.dnsRecordsType == 'Internal' || (has(self.loadBalancer) && self.loadBalancer.type == 'UserManaged')",
                    message: "dnsRecordsType may be External only where loadBalancer.type is UserManaged",
                  },
                ],
              },
              equinixMetal: {
                properties: {
                  apiServerInternalIP: {
                    type: "string",
                  },
                  ingressIP: {
                    type: "string",
                  },
                },
                type: "object",
              },
              external: {
                properties: {
                  cloudControllerManager: {
                    properties: {
                      state: {
                        enum: ["", "External", "None"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                    "x-kubernetes-validations": [
                      {
                        rule: '(has(self.state) == has(oldSelf.state)) || (!has(oldSelf.state) && self.state != "External")',
                        message: "state must not be added or removed later",
                      },
                    ],
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "has(self.cloudControllerManager) == has(oldSelf.cloudControllerManager)",
                    message: "cloudControllerManager must not be added or removed later",
                  },
                ],
              },
              gcp: {
                properties: {
                  cloudLoadBalancerConfig: {
                    default: {
                      dnsType: "PlatformDefault",
                    },
                    nullable: true,
                    properties: {
                      clusterHosted: {
                        properties: {
                          apiIntLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                          apiLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                          ingressLoadBalancerIPs: {
                            format: "ip",
                            items: {
                              maxLength: 39,
                              minLength: 1,
                              type: "string",
                              "x-kubernetes-validations": [
                                {
                                  rule: "isIP(self)",
                                  message: "must be an IP address",
                                },
                              ],
                            },
                            maxItems: 16,
                            type: "array",
                            "x-kubernetes-list-type": "set",
                          },
                        },
                        type: "object",
                      },
                      dnsType: {
                        default: "PlatformDefault",
                        enum: ["ClusterHosted", "PlatformDefault"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                    "x-kubernetes-validations": [
                      {
                        rule: "has(self.dnsType) && self.dnsType != 'ClusterHosted' ? !has(self.clusterHosted) : true",
                        message: "clusterHosted goes with dnsType ClusterHosted, and only with it",
                      },
                    ],
                  },
                  projectID: {
                    type: "string",
                  },
                  region: {
                    type: "string",
                  },
                  resourceLabels: {
                    items: {
                      properties: {
                        key: {
                          maxLength: 63,
                          minLength: 1,
                          pattern: "^[a-z][0-9a-z_-]{0,62}$",
                          type: "string",
                          "x-kubernetes-validations": [
                            {
                              rule: "!self.startsWith('openshift-io') && !self.startsWith('kubernetes-io')",
                              message: "must not begin with openshift-io or kubernetes-io",
                            },
                          ],
                        },
                        value: {
                          maxLength: 63,
                          minLength: 1,
                          pattern: "^[0-9a-z_-]{1,63}$",
                          type: "string",
                        },
                      },
                      required: ["key", "value"],
                      type: "object",
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-map-keys": ["key"],
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, x in oldSelf) && oldSelf.all(x, x in self)",
                        message: "cannot change after installation",
                      },
                    ],
                  },
                  resourceTags: {
                    items: {
                      properties: {
                        key: {
                          maxLength: 63,
                          minLength: 1,
                          pattern: "^[a-zA-Z0-9]([0-9A-Za-z_.-]{0,61}[a-zA-Z0-9])?$",
                          type: "string",
                        },
                        parentID: {
                          maxLength: 32,
                          minLength: 1,
                          pattern: "(^[1-9][0-9]{0,31}$)|(^[a-z][a-z0-9-]{4,28}[a-z0-9]$)",
                          type: "string",
                        },
                        value: {
                          maxLength: 63,
                          minLength: 1,
                          pattern: "^[a-zA-Z0-9]([0-9A-Za-z_.@%=+:,*#&()\\[\\]{}\\-\\s]{0,61}[a-zA-Z0-9])?$",
                          type: "string",
                        },
                      },
                      required: ["key", "parentID", "value"],
                      type: "object",
                    },
                    maxItems: 50,
                    type: "array",
                    "x-kubernetes-list-map-keys": ["key"],
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, x in oldSelf) && oldSelf.all(x, x in self)",
                        message: "cannot change after installation",
                      },
                    ],
                  },
                  universeDomain: {
                    maxLength: 253,
                    minLength: 1,
                    type: "string",
                    "x-kubernetes-validations": [
                      {
                        rule: "!format.dns1123Subdomain().validate(self).hasValue()",
                        message: "must be a host name, or *. and a domain",
                      },
                    ],
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(oldSelf.resourceLabels) && !has(self.resourceLabels) || has(oldSelf.resourceLabels) && has(self.resourceLabels)",
                    message: "resourceLabels can be set at installation only",
                  },
                  {
                    rule: "!has(oldSelf.resourceTags) && !has(self.resourceTags) || has(oldSelf.resourceTags) && has(self.resourceTags)",
                    message: "resourceTags can be set at installation only",
                  },
                ],
              },
              ibmcloud: {
                properties: {
                  cisInstanceCRN: {
                    type: "string",
                  },
                  dnsInstanceCRN: {
                    type: "string",
                  },
                  location: {
                    type: "string",
                  },
                  providerType: {
                    type: "string",
                  },
                  resourceGroupName: {
                    type: "string",
                  },
                  serviceEndpoints: {
                    items: {
                      properties: {
                        name: {
                          enum: [
                            "CIS",
                            "COS",
                            "COSConfig",
                            "DNSServices",
                            "GlobalCatalog",
                            "GlobalSearch",
                            "GlobalTagging",
                            "HyperProtect",
                            "IAM",
                            "KeyProtect",
                            "ResourceController",
                            "ResourceManager",
                            "VPC",
                          ],
                          type: "string",
                        },
                        url: {
                          maxLength: 300,
                          type: "string",
                          "x-kubernetes-validations": [
                            {
                              rule: "isURL(self)",
                              message: "must be a URL",
                            },
                          ],
                        },
                      },
                      required: ["name", "url"],
                      type: "object",
                    },
                    maxItems: 13,
                    type: "array",
                    "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-list-type": "map",
                  },
                },
                type: "object",
              },
              kubevirt: {
                properties: {
                  apiServerInternalIP: {
                    type: "string",
                  },
                  ingressIP: {
                    type: "string",
                  },
                },
                type: "object",
              },
              nutanix: {
                properties: {
                  apiServerInternalIP: {
                    type: "string",
                  },
                  apiServerInternalIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "set",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  dnsRecordsType: {
                    enum: ["Internal", "External"],
                    type: "string",
                  },
                  ingressIP: {
                    type: "string",
                  },
                  ingressIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "set",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  loadBalancer: {
                    default: {
                      type: "OpenShiftManagedDefault",
                    },
                    properties: {
                      type: {
                        default: "OpenShiftManagedDefault",
                        enum: ["OpenShiftManagedDefault", "UserManaged"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.dnsRecordsType) || self.dnsRecordsType == 'Internal' || (has(self.loadBalancer) && self.loadBalancer.type == 'UserManaged')",
                    message: "dnsRecordsType may be External only where loadBalancer.type is UserManaged",
                  },
                ],
              },
              openstack: {
                properties: {
                  apiServerInternalIP: {
                    type: "string",
                  },
                  apiServerInternalIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  cloudName: {
                    type: "string",
                  },
                  dnsRecordsType: {
                    enum: ["Internal", "External"],
                    type: "string",
                  },
                  ingressIP: {
                    type: "string",
                  },
                  ingressIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  loadBalancer: {
                    default: {
                      type: "OpenShiftManagedDefault",
                    },
                    properties: {
                      type: {
                        default: "OpenShiftManagedDefault",
                        enum: ["OpenShiftManagedDefault", "UserManaged"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                  },
                  machineNetworks: {
                    items: {
                      maxLength: 43,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isCIDR(self)",
                          message: "must be a network, such as 10.0.0.0/16",
                        },
                      ],
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, self.exists_one(y, x == y))",
                        message: "each entry must be there once",
                      },
                    ],
                  },
                  nodeDNSIP: {
                    type: "string",
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.dnsRecordsType) || self.dnsRecordsType == 'Internal' || (has(self.loadBalancer) && self.loadBalancer.type == 'UserManaged')",
                    message: "dnsRecordsType may be External only where loadBalancer.type is UserManaged",
                  },
                ],
              },
              ovirt: {
                properties: {
                  apiServerInternalIP: {
                    type: "string",
                  },
                  apiServerInternalIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "set",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  dnsRecordsType: {
                    enum: ["Internal", "External"],
                    type: "string",
                  },
                  ingressIP: {
                    type: "string",
                  },
                  ingressIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "set",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  loadBalancer: {
                    default: {
                      type: "OpenShiftManagedDefault",
                    },
                    properties: {
                      type: {
                        default: "OpenShiftManagedDefault",
                        enum: ["OpenShiftManagedDefault", "UserManaged"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                  },
                  nodeDNSIP: {
                    type: "string",
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.dnsRecordsType) || self.dnsRecordsType == 'Internal' || (has(self.loadBalancer) && self.loadBalancer.type == 'UserManaged')",
                    message: "dnsRecordsType may be External only where loadBalancer.type is UserManaged",
                  },
                ],
              },
              powervs: {
                properties: {
                  cisInstanceCRN: {
                    type: "string",
                  },
                  dnsInstanceCRN: {
                    type: "string",
                  },
                  region: {
                    type: "string",
                  },
                  resourceGroup: {
                    maxLength: 40,
                    pattern: "^[a-zA-Z0-9-_ ]+$",
                    type: "string",
                    "x-kubernetes-validations": [
                      {
                        rule: "oldSelf == '' || self == oldSelf",
                        message: "must not change once it is set",
                      },
                    ],
                  },
                  serviceEndpoints: {
                    items: {
                      properties: {
                        name: {
                          enum: [
                            "CIS",
                            "COS",
                            "COSConfig",
                            "DNSServices",
                            "GlobalCatalog",
                            "GlobalSearch",
                            "GlobalTagging",
                            "HyperProtect",
                            "IAM",
                            "KeyProtect",
                            "Power",
                            "ResourceController",
                            "ResourceManager",
                            "VPC",
                          ],
                          type: "string",
                        },
                        url: {
                          format: "uri",
                          pattern: "^https://",
                          type: "string",
                        },
                      },
                      required: ["name", "url"],
                      type: "object",
                    },
                    type: "array",
                    "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-list-type": "map",
                  },
                  zone: {
                    type: "string",
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(oldSelf.resourceGroup) || has(self.resourceGroup)",
                    message: "resourceGroup must not be removed once it is set",
                  },
                ],
              },
              type: {
                enum: [
                  "",
                  "AWS",
                  "Azure",
                  "BareMetal",
                  "GCP",
                  "Libvirt",
                  "OpenStack",
                  "None",
                  "VSphere",
                  "oVirt",
                  "IBMCloud",
                  "KubeVirt",
                  "EquinixMetal",
                  "PowerVS",
                  "AlibabaCloud",
                  "Nutanix",
                  "External",
                ],
                type: "string",
              },
              vsphere: {
                properties: {
                  apiServerInternalIP: {
                    type: "string",
                  },
                  apiServerInternalIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  dnsRecordsType: {
                    enum: ["Internal", "External"],
                    type: "string",
                  },
                  ingressIP: {
                    type: "string",
                  },
                  ingressIPs: {
                    format: "ip",
                    items: {
                      type: "string",
                    },
                    maxItems: 2,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self == oldSelf || (size(self) == 2 && isIP(self[0]) && isIP(self[1]) ? ip(self[0]).family() != ip(self[1]).family() : true)",
                        message: "must be at most one IPv4 and one IPv6 address",
                      },
                    ],
                  },
                  loadBalancer: {
                    default: {
                      type: "OpenShiftManagedDefault",
                    },
                    properties: {
                      type: {
                        default: "OpenShiftManagedDefault",
                        enum: ["OpenShiftManagedDefault", "UserManaged"],
                        type: "string",
                        "x-kubernetes-validations": [
                          {
                            rule: "oldSelf == '' || self == oldSelf",
                            message: "must not change once it is set",
                          },
                        ],
                      },
                    },
                    type: "object",
                  },
                  machineNetworks: {
                    items: {
                      maxLength: 43,
                      minLength: 1,
                      type: "string",
                      "x-kubernetes-validations": [
                        {
                          rule: "isCIDR(self)",
                          message: "must be a network, such as 10.0.0.0/16",
                        },
                      ],
                    },
                    maxItems: 32,
                    type: "array",
                    "x-kubernetes-list-type": "atomic",
                    "x-kubernetes-validations": [
                      {
                        rule: "self.all(x, self.exists_one(y, x == y))",
                        message: "each entry must be there once",
                      },
                    ],
                  },
                  nodeDNSIP: {
                    type: "string",
                  },
                },
                type: "object",
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.dnsRecordsType) || self.dnsRecordsType == 'Internal' || (has(self.loadBalancer) && self.loadBalancer.type == 'UserManaged')",
                    message: "dnsRecordsType may be External only where loadBalancer.type is UserManaged",
                  },
                ],
              },
            },
            type: "object",
          },
        },
        type: "object",
      },
    },
    required: ["spec"],
    type: "object",
    "x-kubernetes-embedded-resource": true,
    "x-kubernetes-validations": [
      {
        rule: "!has(self.spec.controlPlaneTopology) || (has(oldSelf.spec.controlPlaneTopology) && self.spec.controlPlaneTopology == oldSelf.spec.controlPlaneTopology) || (has(self.status.controlPlaneTopology) && self.spec.controlPlaneTopology == self.status.controlPlaneTopology) || (has(self.status.controlPlaneTopology) && self.status.controlPlaneTopology == 'SingleReplica' && self.spec.controlPlaneTopology == 'HighlyAvailable')",
        message:
          "spec.controlPlaneTopology must be the topology that the status has, or HighlyAvailable where that is SingleReplica",
      },
    ],
  },
  dns: {
    nullable: true,
    properties: {
      apiVersion: {
        type: "string",
      },
      kind: {
        type: "string",
      },
      metadata: {
        type: "object",
      },
      spec: {
        properties: {
          baseDomain: {
            type: "string",
          },
          platform: {
            properties: {
              aws: {
                properties: {
                  privateZoneIAMRole: {
                    type: "string",
                    "x-kubernetes-validations": [
                      {
                        rule: "matches(self, '^arn:(aws|aws-cn|aws-us-gov|aws-eusc):iam::[0-9]{12}:role/.*$')",
                        message: "must be the ARN of a role: arn:aws:iam::ACCOUNT:role/NAME",
                      },
                    ],
                  },
                },
                type: "object",
              },
              type: {
                enum: [
                  "",
                  "AWS",
                  "Azure",
                  "BareMetal",
                  "GCP",
                  "Libvirt",
                  "OpenStack",
                  "None",
                  "VSphere",
                  "oVirt",
                  "IBMCloud",
                  "KubeVirt",
                  "EquinixMetal",
                  "PowerVS",
                  "AlibabaCloud",
                  "Nutanix",
                  "External",
                ],
                type: "string",
                "x-kubernetes-validations": [
                  {
                    rule: "self in ['','AWS']",
                    message: "must be empty or AWS",
                  },
                ],
              },
            },
            required: ["type"],
            type: "object",
            "x-kubernetes-validations": [
              {
                rule: "has(self.type) && self.type == 'AWS' ?  has(self.aws) : !has(self.aws)",
                message: "aws goes with type AWS, and only with it",
              },
            ],
          },
          privateZone: {
            properties: {
              id: {
                type: "string",
              },
              tags: {
                additionalProperties: {
                  type: "string",
                },
                type: "object",
              },
            },
            type: "object",
          },
          publicZone: {
            properties: {
              id: {
                type: "string",
              },
              tags: {
                additionalProperties: {
                  type: "string",
                },
                type: "object",
              },
            },
            type: "object",
          },
        },
        type: "object",
      },
      status: {
        type: "object",
      },
    },
    required: ["spec"],
    type: "object",
    "x-kubernetes-embedded-resource": true,
  },
  proxy: {
    nullable: true,
    properties: {
      httpProxy: {
        type: "string",
      },
      httpsProxy: {
        type: "string",
      },
      noProxy: {
        type: "string",
      },
    },
    type: "object",
  },
  network: {
    nullable: true,
    properties: {
      mtuMigration: {
        nullable: true,
        properties: {
          machine: {
            properties: {
              from: {
                format: "int32",
                minimum: 0,
                type: "integer",
              },
              to: {
                format: "int32",
                minimum: 0,
                type: "integer",
              },
            },
            type: "object",
          },
          network: {
            properties: {
              from: {
                format: "int32",
                minimum: 0,
                type: "integer",
              },
              to: {
                format: "int32",
                minimum: 0,
                type: "integer",
              },
            },
            type: "object",
          },
        },
        type: "object",
      },
    },
    required: ["mtuMigration"],
    type: "object",
  },
};
