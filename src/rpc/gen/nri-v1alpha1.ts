import type * as grpc from '@grpc/grpc-js';
import type { EnumTypeDefinition, MessageTypeDefinition } from '@grpc/proto-loader';

import type { ConfigureRequest as _nri_pkg_api_v1alpha1_ConfigureRequest, ConfigureRequest__Output as _nri_pkg_api_v1alpha1_ConfigureRequest__Output } from './nri/pkg/api/v1alpha1/ConfigureRequest.js';
import type { ConfigureResponse as _nri_pkg_api_v1alpha1_ConfigureResponse, ConfigureResponse__Output as _nri_pkg_api_v1alpha1_ConfigureResponse__Output } from './nri/pkg/api/v1alpha1/ConfigureResponse.js';
import type { Container as _nri_pkg_api_v1alpha1_Container, Container__Output as _nri_pkg_api_v1alpha1_Container__Output } from './nri/pkg/api/v1alpha1/Container.js';
import type { ContainerAdjustment as _nri_pkg_api_v1alpha1_ContainerAdjustment, ContainerAdjustment__Output as _nri_pkg_api_v1alpha1_ContainerAdjustment__Output } from './nri/pkg/api/v1alpha1/ContainerAdjustment.js';
import type { ContainerRequest as _nri_pkg_api_v1alpha1_ContainerRequest, ContainerRequest__Output as _nri_pkg_api_v1alpha1_ContainerRequest__Output } from './nri/pkg/api/v1alpha1/ContainerRequest.js';
import type { ContainerUpdate as _nri_pkg_api_v1alpha1_ContainerUpdate, ContainerUpdate__Output as _nri_pkg_api_v1alpha1_ContainerUpdate__Output } from './nri/pkg/api/v1alpha1/ContainerUpdate.js';
import type { CreateContainerRequest as _nri_pkg_api_v1alpha1_CreateContainerRequest, CreateContainerRequest__Output as _nri_pkg_api_v1alpha1_CreateContainerRequest__Output } from './nri/pkg/api/v1alpha1/CreateContainerRequest.js';
import type { CreateContainerResponse as _nri_pkg_api_v1alpha1_CreateContainerResponse, CreateContainerResponse__Output as _nri_pkg_api_v1alpha1_CreateContainerResponse__Output } from './nri/pkg/api/v1alpha1/CreateContainerResponse.js';
import type { Empty as _nri_pkg_api_v1alpha1_Empty, Empty__Output as _nri_pkg_api_v1alpha1_Empty__Output } from './nri/pkg/api/v1alpha1/Empty.js';
import type { KeyValue as _nri_pkg_api_v1alpha1_KeyValue, KeyValue__Output as _nri_pkg_api_v1alpha1_KeyValue__Output } from './nri/pkg/api/v1alpha1/KeyValue.js';
import type { LinuxCPU as _nri_pkg_api_v1alpha1_LinuxCPU, LinuxCPU__Output as _nri_pkg_api_v1alpha1_LinuxCPU__Output } from './nri/pkg/api/v1alpha1/LinuxCPU.js';
import type { LinuxContainer as _nri_pkg_api_v1alpha1_LinuxContainer, LinuxContainer__Output as _nri_pkg_api_v1alpha1_LinuxContainer__Output } from './nri/pkg/api/v1alpha1/LinuxContainer.js';
import type { LinuxContainerAdjustment as _nri_pkg_api_v1alpha1_LinuxContainerAdjustment, LinuxContainerAdjustment__Output as _nri_pkg_api_v1alpha1_LinuxContainerAdjustment__Output } from './nri/pkg/api/v1alpha1/LinuxContainerAdjustment.js';
import type { LinuxResources as _nri_pkg_api_v1alpha1_LinuxResources, LinuxResources__Output as _nri_pkg_api_v1alpha1_LinuxResources__Output } from './nri/pkg/api/v1alpha1/LinuxResources.js';
import type { Mount as _nri_pkg_api_v1alpha1_Mount, Mount__Output as _nri_pkg_api_v1alpha1_Mount__Output } from './nri/pkg/api/v1alpha1/Mount.js';
import type { PluginClient as _nri_pkg_api_v1alpha1_PluginClient, PluginDefinition as _nri_pkg_api_v1alpha1_PluginDefinition } from './nri/pkg/api/v1alpha1/Plugin.js';
import type { PodSandbox as _nri_pkg_api_v1alpha1_PodSandbox, PodSandbox__Output as _nri_pkg_api_v1alpha1_PodSandbox__Output } from './nri/pkg/api/v1alpha1/PodSandbox.js';
import type { RegisterPluginRequest as _nri_pkg_api_v1alpha1_RegisterPluginRequest, RegisterPluginRequest__Output as _nri_pkg_api_v1alpha1_RegisterPluginRequest__Output } from './nri/pkg/api/v1alpha1/RegisterPluginRequest.js';
import type { RuntimeClient as _nri_pkg_api_v1alpha1_RuntimeClient, RuntimeDefinition as _nri_pkg_api_v1alpha1_RuntimeDefinition } from './nri/pkg/api/v1alpha1/Runtime.js';
import type { StateChangeEvent as _nri_pkg_api_v1alpha1_StateChangeEvent, StateChangeEvent__Output as _nri_pkg_api_v1alpha1_StateChangeEvent__Output } from './nri/pkg/api/v1alpha1/StateChangeEvent.js';
import type { StopContainerResponse as _nri_pkg_api_v1alpha1_StopContainerResponse, StopContainerResponse__Output as _nri_pkg_api_v1alpha1_StopContainerResponse__Output } from './nri/pkg/api/v1alpha1/StopContainerResponse.js';
import type { SynchronizeRequest as _nri_pkg_api_v1alpha1_SynchronizeRequest, SynchronizeRequest__Output as _nri_pkg_api_v1alpha1_SynchronizeRequest__Output } from './nri/pkg/api/v1alpha1/SynchronizeRequest.js';
import type { SynchronizeResponse as _nri_pkg_api_v1alpha1_SynchronizeResponse, SynchronizeResponse__Output as _nri_pkg_api_v1alpha1_SynchronizeResponse__Output } from './nri/pkg/api/v1alpha1/SynchronizeResponse.js';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  nri: {
    pkg: {
      api: {
        v1alpha1: {
          ConfigureRequest: MessageTypeDefinition<_nri_pkg_api_v1alpha1_ConfigureRequest, _nri_pkg_api_v1alpha1_ConfigureRequest__Output>
          ConfigureResponse: MessageTypeDefinition<_nri_pkg_api_v1alpha1_ConfigureResponse, _nri_pkg_api_v1alpha1_ConfigureResponse__Output>
          Container: MessageTypeDefinition<_nri_pkg_api_v1alpha1_Container, _nri_pkg_api_v1alpha1_Container__Output>
          ContainerAdjustment: MessageTypeDefinition<_nri_pkg_api_v1alpha1_ContainerAdjustment, _nri_pkg_api_v1alpha1_ContainerAdjustment__Output>
          ContainerRequest: MessageTypeDefinition<_nri_pkg_api_v1alpha1_ContainerRequest, _nri_pkg_api_v1alpha1_ContainerRequest__Output>
          ContainerState: EnumTypeDefinition
          ContainerUpdate: MessageTypeDefinition<_nri_pkg_api_v1alpha1_ContainerUpdate, _nri_pkg_api_v1alpha1_ContainerUpdate__Output>
          CreateContainerRequest: MessageTypeDefinition<_nri_pkg_api_v1alpha1_CreateContainerRequest, _nri_pkg_api_v1alpha1_CreateContainerRequest__Output>
          CreateContainerResponse: MessageTypeDefinition<_nri_pkg_api_v1alpha1_CreateContainerResponse, _nri_pkg_api_v1alpha1_CreateContainerResponse__Output>
          Empty: MessageTypeDefinition<_nri_pkg_api_v1alpha1_Empty, _nri_pkg_api_v1alpha1_Empty__Output>
          Event: EnumTypeDefinition
          KeyValue: MessageTypeDefinition<_nri_pkg_api_v1alpha1_KeyValue, _nri_pkg_api_v1alpha1_KeyValue__Output>
          LinuxCPU: MessageTypeDefinition<_nri_pkg_api_v1alpha1_LinuxCPU, _nri_pkg_api_v1alpha1_LinuxCPU__Output>
          LinuxContainer: MessageTypeDefinition<_nri_pkg_api_v1alpha1_LinuxContainer, _nri_pkg_api_v1alpha1_LinuxContainer__Output>
          LinuxContainerAdjustment: MessageTypeDefinition<_nri_pkg_api_v1alpha1_LinuxContainerAdjustment, _nri_pkg_api_v1alpha1_LinuxContainerAdjustment__Output>
          LinuxResources: MessageTypeDefinition<_nri_pkg_api_v1alpha1_LinuxResources, _nri_pkg_api_v1alpha1_LinuxResources__Output>
          Mount: MessageTypeDefinition<_nri_pkg_api_v1alpha1_Mount, _nri_pkg_api_v1alpha1_Mount__Output>
          Plugin: SubtypeConstructor<typeof grpc.Client, _nri_pkg_api_v1alpha1_PluginClient> & { service: _nri_pkg_api_v1alpha1_PluginDefinition }
          PodSandbox: MessageTypeDefinition<_nri_pkg_api_v1alpha1_PodSandbox, _nri_pkg_api_v1alpha1_PodSandbox__Output>
          RegisterPluginRequest: MessageTypeDefinition<_nri_pkg_api_v1alpha1_RegisterPluginRequest, _nri_pkg_api_v1alpha1_RegisterPluginRequest__Output>
          Runtime: SubtypeConstructor<typeof grpc.Client, _nri_pkg_api_v1alpha1_RuntimeClient> & { service: _nri_pkg_api_v1alpha1_RuntimeDefinition }
          StateChangeEvent: MessageTypeDefinition<_nri_pkg_api_v1alpha1_StateChangeEvent, _nri_pkg_api_v1alpha1_StateChangeEvent__Output>
          StopContainerResponse: MessageTypeDefinition<_nri_pkg_api_v1alpha1_StopContainerResponse, _nri_pkg_api_v1alpha1_StopContainerResponse__Output>
          SynchronizeRequest: MessageTypeDefinition<_nri_pkg_api_v1alpha1_SynchronizeRequest, _nri_pkg_api_v1alpha1_SynchronizeRequest__Output>
          SynchronizeResponse: MessageTypeDefinition<_nri_pkg_api_v1alpha1_SynchronizeResponse, _nri_pkg_api_v1alpha1_SynchronizeResponse__Output>
        }
      }
    }
  }
}

