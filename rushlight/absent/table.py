"""The table of names that stand for parts which are not here. A part built for real takes its lines out."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field

from ..layout import layout

__all__ = ["HINTS", "PARTS", "Part"]


@dataclass
class Part:
    """The names of one module by what they do; ``instead`` is said to who calls a class or function."""

    instead: str
    no: str = ""  # functions that answer False
    nothing: str = ""  # functions that do nothing
    keeps: str = ""  # decorators that give back what they decorate
    blocks: str = ""  # context managers that do nothing
    classes: str = ""
    errors: str = ""
    warnings: str = ""
    functions: str = ""
    dtypes: str = ""  # of tensors that cannot be made
    enums: dict = field(default_factory=dict)
    values: dict = field(default_factory=dict)
    here: dict = field(default_factory=dict)  # what is here, under another name
    records: dict = field(default_factory=dict)  # values that only describe: name -> fields, with their defaults
    base: str = ""  # the class that the records derive from


_WORKER_STATES = "UNKNOWN INIT HEALTHY UNHEALTHY STOPPED SUCCEEDED FAILED"


class _Unpacked(typing.NamedTuple):
    primal: typing.Any
    tangent: typing.Any


class _Settings:
    """Options of a part that is not here: set and read back, without effect."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return


_ONE_PROCESS = "this part of torch.distributed is not built yet; process groups and collectives are"
_LAUNCHED = "rushlight launch and elastic_launch start processes, and start them again; this inner part is not here"
_SHARDED_BY_XLA = "XLA decides how an operator's result lies: no operator needs a rule; for your own, register_sharding"
_EAGER = "rushlight.compile traces Python itself: there is no graph of instructions to look at or change"
_SCRIPT = "there is no TorchScript here; rushlight.compile and rushlight.export take the module as it is"
_PROFILE = "torch.profiler.profile writes tables and traces; this part of the profiler is not here"
_QUANTIZED = "this part of quantization is not here; quantize_dynamic, prepare, prepare_qat and convert are"
_NO_DEVICE = "there is no such device here; is_available() says so"
_ONNX = "torch.onnx.export writes ONNX files; this part of torch.onnx is not here"
_CUDA = "XLA plans a GPU's memory and launches itself; rushlight.compile makes one program of a step"
_TRACED = "PyTorch's compiler is not here; rushlight.compile is XLA's"
_VISION = "this part of torchvision is not built yet"
_LATER = "it is not built yet"
_NESTED = "nested tensors are of layout jagged, masked ones plain tensors with a mask"
_SPARSE = "sparse tensors are COO, CSR or CSC"
_PIPES = "there are no data pipes; use Dataset or IterableDataset"
_SYMBOLS = "sizes are numbers here; rushlight.export takes dynamic_shapes"
_TYPED = "use dtype= and device="
_INTERNAL = "this is an inner part of PyTorch, written in C++; rushlight has no counterpart"

_NN_IN_C = """
    avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus
    softshrink
"""
_RESULTS = """
    aminmax cummax cummin frexp geqrf histogram histogramdd kthvalue linalg_cholesky_ex linalg_eig linalg_eigh
    linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex
    linalg_qr linalg_slogdet linalg_solve_ex linalg_svd lu_unpack max median min mode nanmedian qr slogdet sort svd topk
    triangular_solve
"""
_FUNCTIONAL = """
    atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors cartesian_prod block_diag cdist chain_matmul
    einsum istft lu norm meshgrid pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index
"""

_CASTS = "Byte Char Short Int Long Half Float Double"
_TAGS = """
    core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view
    maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order
    nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy
"""


def _from(place: str, names: str) -> dict[str, str]:
    """Names that are here, in another module."""
    return {name: f"{place}.{name}" for name in names.split()}


PARTS = {
    "": Part(
        _INTERNAL,
        nothing="_assert_async _sync",
        classes="PyTorchFileReader PyTorchFileWriter "
        "Future SymInt SymFloat SymBool TensorType ScriptObject ScriptModule Stream Event DispatchKey "
        "DeviceObjType FloatType",
        keeps="_disable_dynamo",
        functions="_nested_view_from_buffer _nested_compute_contiguous_strides_offsets",
        dtypes="quint4x2 quint2x4 float4_e2m1fn_x2 uint1 uint2 uint3 uint4 uint5 "
        "uint6 uint7 int1 int2 int3 int4 int5 int6 int7 bits1x8 bits2x4 bits4x2 bits8 bits16",
        values={name: layout(name) for name in ("_mkldnn",)},
        enums={"Tag": _TAGS},
        no="is_autocast_ipu_enabled is_autocast_xla_enabled",
        here={
            "_dynamo_is_compiling": "compiler.is_compiling",
            "StorageBase": "UntypedStorage",
            **{f"_cast_{kind}": f"Tensor.{kind.lower()}" for kind in _CASTS.split()},
        },
    ),
    "__config__": Part(_INTERNAL, here={"show": "config.show", "parallel_info": "config.show"}),
    "_C": Part(
        _INTERNAL,
        values={
            "_TensorMeta": type,
            "_get_privateuse1_backend_name": lambda: "privateuseone",
        },
        no="_is_tracing _are_functorch_transforms_active _has_mkldnn _cuda_isCurrentStreamCapturing "
        "_jit_can_fuse_on_cpu _jit_can_fuse_on_gpu _is_any_autocast_enabled _get_cudnn_allow_tf32",
        nothing="_log_api_usage_once _get_tracing_state _cuda_clearCublasWorkspaces _jit_set_profiling_mode "
        "_jit_set_profiling_executor _jit_override_can_fuse_on_gpu _jit_override_can_fuse_on_cpu "
        "_jit_set_texpr_fuser_enabled _jit_set_nvfuser_enabled _jit_set_nvfuser_guard_mode "
        "_set_math_sdp_allow_fp16_bf16_reduction _set_grad_enabled _dynamo_is_compiling",
        classes="ScriptFunction ScriptModule Graph Node Value Type TensorType ListType Future _TensorBase "
        "PyTorchFileReader PyTorchFileWriter DispatchKey DispatchKeySet _VariableFunctions ScriptMethod",
        here={
            "Generator": "Generator",
            "TensorBase": "Tensor",
            "Size": "Size",
            "dtype": "dtype",
            "device": "device",
            "memory_format": "memory_format",
            "layout": "layout",
            "default_generator": "default_generator",
            "parse_schema": "schemas.parse_schema",
            "FunctionSchema": "schemas.FunctionSchema",
            "Argument": "schemas.Argument",
            "_DisableTorchDispatch": "autograd.dispatching.Disabled",
            "_disabled_torch_dispatch_impl": "autograd.dispatching.disabled",
            "DisableTorchFunction": "autograd.overriding.DisableTorchFunction",
            "DisableTorchFunctionSubclass": "autograd.overriding.DisableTorchFunctionSubclass",
            "_disabled_torch_function_impl": "autograd.overriding.disabled",
            "_is_torch_function_mode_enabled": "overrides._is_torch_function_mode_enabled",
            "_get_default_device": "checks._default_device",
            "_get_accelerator": "checks._accelerator",
            "_get_cudnn_enabled": "checks._cudnn_enabled",
            "_is_alias_of": "checks._is_alias_of",
            "_show_config": "config.show",
            "_current_graph_task_id": "autograd.mode.backward_number",
            "_has_torch_function": "overrides.has_torch_function",
            "_has_torch_function_unary": "overrides.has_torch_function_unary",
            "_has_torch_function_variadic": "overrides.has_torch_function_variadic",
        },
    ),
    "_C._nn": Part(
        _INTERNAL,
        here={
            "_parse_to": "nn.conversion._parse_to",
            "log_sigmoid": "nn.functional.logsigmoid",
            **{name: f"nn.functional.{name}" for name in _NN_IN_C.split()},
        },
    ),
    "_C._functorch": Part(
        _INTERNAL,
        no="is_functorch_wrapped_tensor is_gradtrackingtensor is_legacy_batchedtensor",
        nothing="maybe_get_level",
        here=_from("func.mapping", "_add_batch_dim _remove_batch_dim get_unwrapped is_batchedtensor"),
    ),
    "_C._distributed_rpc": Part(_ONE_PROCESS, classes="PyRRef"),
    "_C._autograd": Part(_INTERNAL, classes="DeviceType ProfilerActivity"),
    "_C._distributed_c10d": Part(
        _ONE_PROCESS,
        classes="Reducer",
        here=_from(
            "distributed.distributed_c10d",
            "AllToAllOptions AllgatherOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions "
            "BroadcastOptions FileStore GatherOptions HashStore PrefixStore ProcessGroup ReduceOp ReduceOptions "
            "ReduceScatterOptions ScatterOptions Store TCPStore Work",
        ),
    ),
    "_tensor": Part(_INTERNAL, here={"Tensor": "Tensor"}),
    "_tensor_str": Part(
        _INTERNAL,
        functions="_add_suffixes _str_intern _tensor_str",
        values={"PRINT_OPTS": _Settings()},
        here={
            "set_printoptions": "set_printoptions",
            "printoptions": "_printing.printoptions",
            "_str": "Tensor.__repr__",
        },
    ),
    "_utils": Part(
        _INTERNAL,
        no="is_compiling",
        here={
            "_flatten_dense_tensors": "nn.utils.convert_parameters.parameters_to_vector",
            "_unflatten_dense_tensors": "nn.utils.convert_parameters.parts_of_vector",
            "_get_available_device_type": "checks._available_device_type",
            "_get_device_module": "get_device_module",
        },
    ),
    "return_types": Part("", here={name: f"ops.returns.{name}" for name in _RESULTS.split()}),
    "_utils_internal": Part(_INTERNAL, nothing="log_torchscript_usage log_export_usage"),
    "_dynamo": Part(
        _TRACED,
        keeps="allow_in_graph forbid_in_graph assume_constant_result run nonstrict_trace substitute_in_graph "
        "dont_skip_tracing",
        nothing="mark_dynamic mark_static mark_static_address maybe_mark_dynamic mark_unbacked skip_frame",
        blocks="patch_dynamo_config error_on_graph_break",
        functions="export lookup_backend register_backend",
        here={
            "disable": "compiler.disable",
            "disallow_in_graph": "compiler.disable",
            "reset": "compiler.reset",
            "reset_code_caches": "compiler.reset",
            "set_stance": "compiler.set_stance",
            "graph_break": "compiler.dynamo.graph_break",
            "explain": "compiler.dynamo.explain",
            "optimize": "compiler.dynamo.optimize",
            "optimize_assert": "compiler.dynamo.optimize_assert",
            "is_compiling": "compiler.is_compiling",
            "list_backends": "compiler.list_backends",
            "OptimizedModule": "compiler.module.OptimizedModule",
        },
    ),
    "_dynamo.config": Part(
        "",
        values={
            "cache_size_limit": 8,
            "recompile_limit": 8,
            "suppress_errors": False,
            "verbose": False,
            "capture_scalar_outputs": False,
            "capture_dynamic_output_shape_ops": False,
            "optimize_ddp": True,
            "assume_static_by_default": True,
            "automatic_dynamic_shapes": True,
            "accumulated_cache_size_limit": 256,
            "compiled_autograd": False,
            "inline_inbuilt_nn_modules": True,
            "allow_unspec_int_on_nn_module": False,
            "reorderable_logging_functions": set(),
            "trace_autograd_ops": False,
        },
    ),
    "_dynamo.eval_frame": Part(
        _TRACED,
        here={
            "OptimizedModule": "compiler.module.OptimizedModule",
            "disable": "compiler.disable",
            "optimize": "compiler.dynamo.optimize",
        },
    ),
    "_dynamo.decorators": Part(
        _TRACED,
        keeps="allow_in_graph",
        nothing="mark_static_address mark_dynamic mark_static",
        here={"disable": "compiler.disable"},
    ),
    "_dynamo.external_utils": Part(_TRACED, here={"is_compiling": "compiler.is_compiling"}),
    "_dynamo.utils": Part(_TRACED, nothing="compile_times is_compile_supported", values={"counters": {}}),
    "_dynamo.testing": Part(_TRACED, classes="CompileCounter"),
    "_dynamo.exc": Part(_TRACED, errors="TorchDynamoException Unsupported BackendCompilerFailed UserError"),
    "_dynamo._trace_wrapped_higher_order_op": Part(_TRACED, classes="TransformGetItemToIndex"),
    "_inductor": Part(_TRACED, functions="compile aoti_compile_and_package"),
    "_inductor.config": Part(
        "",
        values={
            "triton": _Settings(),
            "cpp": _Settings(),
            "coordinate_descent_tuning": False,
            "fx_graph_cache": True,
            "max_autotune": False,
            "conv_1x1_as_mm": False,
            "epilogue_fusion": True,
            "force_fuse_int_mm_with_mul": False,
            "use_mixed_mm": True,
            "freezing": False,
            "cpp_wrapper": False,
        },
    ),
    "_guards": Part(_TRACED, classes="Source TracingContext", nothing="active_fake_mode detect_fake_mode"),
    "_higher_order_ops": Part(_TRACED, functions="cond while_loop scan map"),
    "_higher_order_ops.associative_scan": Part(_TRACED, functions="associative_scan"),
    "_higher_order_ops.flex_attention": Part(
        _TRACED, here={"flex_attention": "nn.attention.flex_attention.flex_attention"}
    ),
    "_functorch": Part(_TRACED),
    "_functorch.vmap": Part(
        _TRACED,
        here={
            **_from("func.mapping", "vmap _add_batch_dim _remove_batch_dim _maybe_remove_batch_dim _get_name"),
            **_from("utils._pytree", "tree_flatten tree_unflatten _broadcast_to_and_flatten"),
            "Tensor": "Tensor",
        },
    ),
    "_functorch.config": Part("", values={"activation_memory_budget": 1.0, "donated_buffer": False}),
    "_functorch.aot_autograd": Part(_TRACED, functions="aot_function aot_module"),
    "_subclasses": Part(
        _TRACED,
        classes="FakeTensor FakeTensorMode CrossRefFakeMode",
        errors="DynamicOutputShapeException UnsupportedFakeTensorException",
    ),
    "_subclasses.fake_tensor": Part(
        _TRACED, classes="FakeTensor FakeTensorMode", nothing="maybe_get_fake_mode", no="is_fake"
    ),
    "_prims_common": Part(_TRACED, classes="TensorMeta"),
    "_decomp": Part(_TRACED, functions="get_decompositions register_decomposition core_aten_decompositions"),
    "_export": Part(_TRACED),
    "_jit_internal": Part(
        _SCRIPT,
        keeps="ignore unused export _overload _overload_method",
        no="is_scripting is_final",
        functions="boolean_dispatch",
        classes="FunctionModifiers",
        values={
            "Final": typing.Final,
            "BroadcastingList1": list,
            "BroadcastingList2": list,
            "BroadcastingList3": list,
            "Optional": typing.Optional,
            "List": list,
            "Dict": dict,
            "Tuple": tuple,
        },
    ),
    "_logging": Part(_TRACED, nothing="set_logs _init_logs warning_once"),
    "_ops": Part(_INTERNAL, classes="OpOverload OpOverloadPacket HigherOrderOperator"),
    "_weights_only_unpickler": Part(_INTERNAL, functions="load"),
    "ao.nn.quantized": Part(_QUANTIZED, classes="Embedding EmbeddingBag Conv1d Conv3d LSTM BatchNorm2d LayerNorm"),
    "ao.quantization": Part(
        _QUANTIZED,
        classes="QConfigMapping QuantType",
        functions="get_default_qconfig_mapping get_default_qat_qconfig_mapping prepare_jit convert_jit quantize_jit "
        "quantize_dynamic_jit prepare_dynamic_jit convert_dynamic_jit fuse_conv_bn_jit",
    ),
    "ao.quantization.quantize_fx": Part(
        _QUANTIZED, functions="prepare_fx prepare_qat_fx convert_fx fuse_fx convert_to_reference_fx"
    ),
    "ao.quantization.quantize_pt2e": Part(_QUANTIZED, functions="prepare_pt2e prepare_qat_pt2e convert_pt2e"),
    "autograd": Part(
        "autograd.Function takes and gives nested structures itself",
        classes="NestedIOFunction DeviceType",
        no="is_view_replay_enabled kineto_available",
        values={"_is_checkpoint_valid": lambda: True},
    ),
    "autograd.anomaly_mode": Part("", here=_from("autograd", "detect_anomaly set_detect_anomaly")),
    "autograd.grad_mode": Part(
        "",
        here=_from(
            "autograd",
            "no_grad enable_grad set_grad_enabled inference_mode set_multithreading_enabled enforce_grad_layout_policy",
        ),
    ),
    "autograd.graph": Part(
        "a backward pass here is one thread, and compile plans its memory",
        nothing="set_warn_on_accumulate_grad_stream_mismatch set_override_stale_capture_stream",
        blocks="region_activation_memory_budget",
    ),
    "autograd.profiler": Part(
        _PROFILE, classes="KinetoStepTracker EnforceUnique", functions="load_nvprof parse_nvprof_trace"
    ),
    "profiler": Part(_PROFILE, classes="ExecutionTraceObserver"),
    "backends.cpu": Part("", values={"get_cpu_capability": lambda: "DEFAULT"}),
    "cpu": Part(
        "",
        nothing="synchronize set_device current_stream",
        blocks="stream",
        classes="Stream StreamContext Event",
        values={
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: "cpu",
        },
    ),
    "cuda.graphs": Part(
        _CUDA,
        no="is_current_stream_capturing",
        classes="CUDAGraph graph",
        functions="graph_pool_handle make_graphed_callables",
    ),
    "cuda": Part(
        _CUDA,
        classes="CUDAGraph graph ExternalStream MemPool CUDAPluggableAllocator CudaError GreenContext",
        errors="DeferredCudaCallError",
        blocks="caching_allocator_disabled",
        functions="caching_allocator_enable check_error cudaStatus current_solver_handle device_memory_used "
        "get_per_process_memory_fraction get_stream_from_external host_memory_stats host_memory_stats_as_nested_dict "
        "memory_stats_as_nested_dict memory_usage temperature power_draw clock_rate "
        "graph_pool_handle make_graphed_callables use_mem_pool change_current_allocator memory_snapshot "
        "caching_allocator_alloc caching_allocator_delete cudart current_blas_handle utilization list_gpu_processes "
        "set_per_process_memory_fraction",
        values={
            "default_generators": (),
            "has_half": True,
            "has_magma": False,
            "get_gencode_flags": lambda: "",
            "get_sync_debug_mode": lambda: 0,
            "get_allocator_backend": lambda: "xla",
        },
        nothing="set_sync_debug_mode reset_accumulated_memory_stats reset_accumulated_host_memory_stats "
        "reset_peak_host_memory_stats _lazy_init _lazy_call",
    ),
    "cuda.amp.autocast_mode": Part("", here=_from("cuda.amp", "autocast custom_fwd custom_bwd")),
    "cuda.amp.common": Part("", here=_from("cuda.amp", "amp_definitely_not_available")),
    "cuda.amp.grad_scaler": Part("", here=_from("cuda.amp", "GradScaler")),
    "cpu.amp": Part("", here={"autocast": "amp.older.cpu_autocast", "GradScaler": "amp.older.cpu_GradScaler"}),
    "cpu.amp.autocast_mode": Part("", here={"autocast": "amp.older.cpu_autocast"}),
    "cpu.amp.grad_scaler": Part("", here={"GradScaler": "amp.older.cpu_GradScaler"}),
    "cuda.memory": Part(
        _CUDA,
        functions="caching_allocator_alloc memory_snapshot _record_memory_history _dump_snapshot",
        here=_from(
            "cuda",
            "memory_allocated max_memory_allocated memory_reserved max_memory_reserved empty_cache memory_stats "
            "memory_summary mem_get_info reset_peak_memory_stats reset_accumulated_memory_stats get_allocator_backend "
            "CUDAPluggableAllocator MemPool caching_allocator_delete change_current_allocator list_gpu_processes "
            "set_per_process_memory_fraction use_mem_pool",
        ),
    ),
    "cuda.random": Part(
        _CUDA,
        here=_from(
            "cuda",
            "get_rng_state set_rng_state get_rng_state_all set_rng_state_all manual_seed manual_seed_all seed "
            "initial_seed",
        ),
    ),
    "cuda.nccl": Part(_ONE_PROCESS, no="is_available", functions="version all_reduce broadcast"),
    "cuda.tunable": Part(_CUDA, no="is_enabled"),
    "cuda.comm": Part(
        "",
        here=_from("nn.parallel.comm", "broadcast broadcast_coalesced reduce_add reduce_add_coalesced scatter gather"),
    ),
    "distributed": Part(
        _LATER,
        classes="Reducer Logger",
        here={
            "GradBucket": "nn.parallel.reducer.GradBucket",
            "BuiltinCommHookType": "nn.parallel.reducer.BuiltinCommHookType",
            "_broadcast_coalesced": "distributed.utils._broadcast_coalesced",
        },
    ),
    "distributed.distributed_c10d": Part(_LATER, functions="_find_pg_by_ranks_and_tag _new_process_group_helper"),
    "distributed.elastic.multiprocessing": Part(
        _LAUNCHED,
        classes="DefaultLogsSpecs LogsSpecs PContext",
        functions="start_processes",
        enums={"Std": "NONE OUT ERR ALL"},
    ),
    "distributed.elastic.agent": Part(_LAUNCHED),
    "distributed.elastic.agent.server": Part(
        _LAUNCHED, classes="ElasticAgent RunResult Worker WorkerGroup WorkerSpec", enums={"WorkerState": _WORKER_STATES}
    ),
    "distributed.elastic.agent.server.api": Part(
        _LAUNCHED,
        classes="ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec",
        enums={"WorkerState": _WORKER_STATES},
    ),
    "distributed.elastic.agent.server.local_elastic_agent": Part(_LAUNCHED, classes="LocalElasticAgent"),
    "distributed.elastic.rendezvous": Part(
        _LAUNCHED,
        classes="RendezvousHandler RendezvousHandlerRegistry RendezvousInfo RendezvousParameters",
        errors="RendezvousError RendezvousClosedError RendezvousTimeoutError RendezvousConnectionError "
        "RendezvousStateError RendezvousGracefulExitError",
    ),
    "distributed.elastic.rendezvous.api": Part(
        _LAUNCHED, classes="RendezvousHandler RendezvousHandlerRegistry RendezvousInfo RendezvousParameters"
    ),
    "distributed.elastic.rendezvous.registry": Part(_LAUNCHED, functions="get_rendezvous_handler"),
    "distributed.elastic.rendezvous.c10d_rendezvous_backend": Part(
        _LAUNCHED, classes="C10dRendezvousBackend", functions="create_backend"
    ),
    "distributed.elastic.rendezvous.dynamic_rendezvous": Part(
        _LAUNCHED, classes="DynamicRendezvousHandler", functions="create_handler"
    ),
    "distributed.elastic.metrics": Part(
        _LAUNCHED, keeps="prof profile", nothing="configure put_metric publish_metric initialize_metrics"
    ),
    "distributed.elastic.events": Part(
        _LAUNCHED,
        classes="Event RdzvEvent",
        nothing="record record_rdzv_event construct_and_record_rdzv_event",
        enums={"EventSource": "AGENT WORKER", "NodeState": "INIT RUNNING SUCCEEDED FAILED"},
    ),
    "distributed.elastic.timer": Part(
        _LAUNCHED, classes="LocalTimerClient LocalTimerServer TimerClient TimerServer", functions="configure expires"
    ),
    "distributed.rpc": Part(
        _ONE_PROCESS,
        no="is_available",
        functions="init_rpc shutdown rpc_sync rpc_async remote get_worker_info",
        classes="RRef TensorPipeRpcBackendOptions RpcBackendOptions WorkerInfo PyRRef",
        enums={"BackendType": "UNDEFINED TENSORPIPE"},
    ),
    "distributed.rpc.api": Part(
        _ONE_PROCESS,
        keeps="_require_initialized",
        functions="init_rpc shutdown rpc_sync rpc_async remote _barrier",
        values={"UNSET_RPC_TIMEOUT": -1.0},
    ),
    "distributed.autograd": Part(
        _ONE_PROCESS, no="is_available", classes="context DistAutogradContext", functions="backward get_gradients"
    ),
    "distributed.optim": Part(_ONE_PROCESS, classes="DistributedOptimizer", functions="as_functional_optim"),
    "distributed.tensor.placement_types": Part(
        _ONE_PROCESS,
        classes="_MaskPartial",
        records={"_StridedShard": {"dim": ..., "split_factor": ...}},
        base="distributed.tensor.placement_types.Placement",
    ),
    "distributed.tensor._utils": Part(
        _ONE_PROCESS,
        here={
            "compute_local_shape_and_global_offset": "distributed.tensor.dtensor.compute_local_shape_and_global_offset"
        },
    ),
    "distributed.tensor._api": Part(
        _ONE_PROCESS, here=_from("distributed.tensor", "DTensor distribute_tensor distribute_module")
    ),
    "distributed.tensor._random": Part(_ONE_PROCESS, functions="manual_seed is_rng_supported_mesh"),
    "distributed.tensor._ops": Part(_SHARDED_BY_XLA),
    "distributed.tensor._ops.utils": Part(_SHARDED_BY_XLA, functions="register_op_strategy register_prop_rule"),
    "distributed.tensor.parallel.api": Part("", here=_from("distributed.tensor.parallel", "parallelize_module")),
    "distributed.tensor.parallel.loss": Part("", here=_from("distributed.tensor.parallel", "loss_parallel")),
    "distributed.tensor.device_mesh": Part(
        _ONE_PROCESS,
        here={name: f"distributed.device_mesh.{name}" for name in ("DeviceMesh", "init_device_mesh")},
    ),
    "distributed.tensor._dtensor_spec": Part(_ONE_PROCESS, classes="DTensorSpec TensorMeta"),
    "distributed._tensor": Part(
        _ONE_PROCESS,
        here={
            name: f"distributed.tensor.{name}"
            for name in (
                "DTensor",
                "Shard",
                "Replicate",
                "Partial",
                "Placement",
                "DeviceMesh",
                "distribute_tensor",
                "distribute_module",
            )
        },
    ),
    "distributed._tensor.api": Part(
        _ONE_PROCESS, here=_from("distributed.tensor", "DTensor distribute_tensor distribute_module")
    ),
    "distributed._tensor.device_mesh": Part(
        _ONE_PROCESS, here=_from("distributed.device_mesh", "DeviceMesh init_device_mesh")
    ),
    "distributed._tensor.placement_types": Part(
        _ONE_PROCESS, here=_from("distributed.tensor", "Shard Replicate Partial Placement")
    ),
    "distributed._tensor.experimental": Part(
        _ONE_PROCESS, here=_from("distributed.tensor.experimental", "local_map context_parallel implicit_replication")
    ),
    "distributed._composable": Part(
        _ONE_PROCESS, functions="replicate checkpoint", here={"fully_shard": "distributed.fsdp.fully_shard"}
    ),
    "distributed._composable.fsdp": Part(
        _ONE_PROCESS,
        here={
            name: f"distributed.fsdp.{name}"
            for name in ("fully_shard", "FSDPModule", "MixedPrecisionPolicy", "CPUOffloadPolicy", "OffloadPolicy")
        },
    ),
    "distributed._shard": Part(_ONE_PROCESS),
    "distributed._shard.sharded_tensor": Part(_ONE_PROCESS, classes="ShardedTensor Shard"),
    "distributed._shard.sharded_tensor.api": Part(_ONE_PROCESS, classes="ShardedTensor"),
    "distributed._shard.checkpoint": Part(
        "", here=_from("distributed.checkpoint", "FileSystemReader FileSystemWriter load_state_dict save_state_dict")
    ),
    "distributed.fsdp.fully_sharded_data_parallel": Part(
        "",
        here=_from(
            "distributed.fsdp",
            "StateDictConfig FullStateDictConfig LocalStateDictConfig ShardedStateDictConfig OptimStateDictConfig "
            "FullOptimStateDictConfig LocalOptimStateDictConfig ShardedOptimStateDictConfig",
        ),
    ),
    "distributed.fsdp._runtime_utils": Part(_ONE_PROCESS, functions="_root_pre_forward _lazy_init"),
    "distributed.fsdp._traversal_utils": Part(_ONE_PROCESS, functions="_get_fsdp_handles _get_fsdp_states"),
    "distributed.fsdp.wrap": Part(
        _ONE_PROCESS, classes="_FSDPPolicy", functions="_or_policy _module_wrap_policy _recursive_wrap _auto_wrap"
    ),
    "distributed.fsdp._common_utils": Part(
        _ONE_PROCESS,
        classes="_FSDPState",
        functions="_get_module_fsdp_state clean_tensor_name",
        enums={"TrainingState": "IDLE FORWARD_BACKWARD SUMMON_FULL_PARAMS"},
    ),
    "distributed.checkpoint": Part(
        _LATER,
        classes="QuantizedHuggingFaceStorageReader",
        functions="load_sharded_optimizer_state_dict",
    ),
    "distributed.checkpoint.planner_helpers": Part(
        _LATER, functions="_create_read_items _create_write_items create_read_items_for_chunk_list"
    ),
    "distributed.checkpoint._fsspec_filesystem": Part(
        "torch.distributed.checkpoint reads and writes folders of this machine", classes="FsspecReader FsspecWriter"
    ),
    "distributed.checkpoint.filesystem": Part(_LATER, classes="FileSystem FileSystemBase SerializationFormat"),
    "distributed.checkpoint.format_utils": Part(_LATER, classes="BroadcastingTorchSaveReader DynamicMetaLoadPlanner"),
    "distributed.checkpoint.optimizer": Part(_ONE_PROCESS, functions="load_sharded_optimizer_state_dict"),
    "nn.attention.flex_attention": Part(
        "nested tensors have no block mask here; pad them", functions="create_nested_block_mask"
    ),
    "nn.attention": Part(
        "which kernel computes attention is chosen here by itself",
        functions="register_flash_attention_impl activate_flash_attention_impl list_flash_attention_impls "
        "current_flash_attention_impl restore_flash_attention_impl",
    ),
    "utils._mode_utils": Part("", here={"no_dispatch": "autograd.dispatching.Disabled"}),
    "quantization.observer": Part(
        _QUANTIZED, here=_from("ao.quantization", "HistogramObserver MinMaxObserver PerChannelMinMaxObserver")
    ),
    "quantization.qconfig": Part(_QUANTIZED, here=_from("ao.quantization", "QConfig")),
    "nn.intrinsic": Part(_QUANTIZED),
    "nn.quantized": Part(
        _QUANTIZED,
        here={
            name: f"ao.nn.quantized.{name}"
            for name in ["Conv2d", "DeQuantize", "FloatFunctional", "Linear", "Quantize"]
        },
    ),
    "nn.quantized.dynamic": Part(
        _QUANTIZED, here={name: f"ao.nn.quantized.dynamic.{name}" for name in ["GRU", "LSTM", "Linear"]}
    ),
    "nn.qat": Part(_QUANTIZED),
    "nn.quantizable": Part(_QUANTIZED),
    "fx.immutable_collections": Part(_EAGER, values={"immutable_list": list, "immutable_dict": dict}),
    "fx._compatibility": Part(_EAGER, keeps="compatibility"),
    "fx.traceback": Part(_EAGER, blocks="annotate preserve_node_meta"),
    "fx.experimental": Part(_EAGER),
    "fx.experimental.proxy_tensor": Part(
        _EAGER, nothing="get_proxy_mode", functions="make_fx", classes="ProxyTorchDispatchMode"
    ),
    "fx.experimental.symbolic_shapes": Part(
        _EAGER,
        no="is_symbolic free_symbols",
        classes="ShapeEnv",
        functions="guard_size_oblivious statically_known_true",
    ),
    "functional": Part("", here={name: name for name in _FUNCTIONAL.split()}),
    "jit": Part(
        _SCRIPT,
        keeps="_overload _overload_method interface script_if_tracing export_opnames _script_if_tracing script_method",
        nothing="set_fusion_strategy enable_onednn_fusion",
        no="onednn_fusion_enabled",
        blocks="fuser optimized_execution strict_fusion",
        classes="ScriptModule ScriptFunction RecursiveScriptModule TracedModule TopLevelTracedModule "
        "CompilationUnit Future",
        errors="Error TracingCheckError",
        warnings="TracerWarning",
        functions="fork wait trace_module jit_module_from_flatbuffer _get_trace_graph",
    ),
    "jit._script": Part(_SCRIPT, classes="ScriptModule RecursiveScriptModule"),
    "jit._trace": Part(_SCRIPT, classes="TopLevelTracedModule TracedModule", here={"is_tracing": "jit.is_tracing"}),
    "jit.annotations": Part(_SCRIPT, values={"List": list, "Dict": dict, "Optional": typing.Optional, "Tuple": tuple}),
    "onnx": Part(
        _ONNX,
        no="is_onnxrt_backend_supported",
        functions="dynamo_export register_custom_op_symbolic unregister_custom_op_symbolic "
        "select_model_mode_for_export",
        classes="JitScalarType ExportOptions",
        enums={"OperatorExportTypes": "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK", "TrainingMode": "EVAL PRESERVE TRAINING"},
    ),
    "onnx.symbolic_helper": Part(
        _ONNX, keeps="parse_args quantized_args", functions="_get_tensor_sizes _maybe_get_const _unimplemented"
    ),
    "onnx.symbolic_opset9": Part(_ONNX),
    "onnx.symbolic_opset11": Part(_ONNX),
    "onnx.operators": Part(_ONNX, functions="shape_as_tensor"),
    "onnx.utils": Part(_ONNX, here={"export": "onnx.export"}),
    "mps": Part(
        _NO_DEVICE,
        no="is_available",
        nothing="synchronize empty_cache manual_seed seed",
        functions="get_rng_state set_rng_state current_allocated_memory driver_allocated_memory recommended_max_memory "
        "set_per_process_memory_fraction",
        values={"device_count": lambda: 0},
    ),
    "xpu": Part(
        _NO_DEVICE,
        no="is_available is_initialized is_bf16_supported",
        nothing="synchronize empty_cache manual_seed manual_seed_all seed reset_peak_memory_stats",
        functions="current_device get_device_name get_device_properties get_device_capability get_rng_state "
        "set_rng_state get_rng_state_all set_rng_state_all set_device current_stream mem_get_info stream device",
        values={
            "device_count": lambda: 0,
            "memory_stats": lambda device=None: {},
            "memory_allocated": lambda device=None: 0,
            "max_memory_allocated": lambda device=None: 0,
            "memory_reserved": lambda device=None: 0,
        },
        classes="Stream Event",
    ),
    "mtia": Part(
        _NO_DEVICE,
        no="is_available is_initialized",
        nothing="synchronize empty_cache manual_seed",
        functions="current_device get_rng_state set_rng_state",
        values={"device_count": lambda: 0},
    ),
    "package": Part(
        _INTERNAL,
        classes="PackageImporter PackageExporter Directory GlobGroup Importer OrderedImporter",
        errors="EmptyMatchError ObjMismatchError ObjNotFoundError PackagingError",
        no="is_from_package",
    ),
    "distributions.exp_family": Part("", here=_from("distributions", "ExponentialFamily")),
    "optim.adamw": Part("", here=_from("optim", "AdamW")),
    "hub": Part(
        "",
        values={
            "DEFAULT_CACHE_DIR": "~/.cache",
            "ENV_GITHUB_TOKEN": "GITHUB_TOKEN",
            "ENV_TORCH_HOME": "TORCH_HOME",
            "ENV_XDG_CACHE_HOME": "XDG_CACHE_HOME",
            "MODULE_HUBCONF": "hubconf.py",
            "VAR_DEPENDENCY": "dependencies",
            "READ_DATA_CHUNK": 128 * 1024,
        },
    ),
    "nn.functional": Part(
        "float8 matrix products are CUDA's",
        functions="scaled_mm scaled_grouped_mm",
        values={
            "GRID_SAMPLE_INTERPOLATION_MODES": {"bilinear": 0, "nearest": 1, "bicubic": 2},
            "GRID_SAMPLE_PADDING_MODES": {"zeros": 0, "border": 1, "reflection": 2},
        },
        here={
            **_from("overrides", "has_torch_function handle_torch_function"),
            **_from("nn.functional.attention", "_mha_shape_check _canonical_mask _none_or_dtype"),
            "_Reduction": "nn._reduction",
        },
    ),
    "compiler": Part(
        _TRACED,
        nothing="set_default_backend set_enable_guard_collectives",
        keeps="substitute_in_graph",
        functions="wrap_numpy save_cache_artifacts load_cache_artifacts load_compiled_function "
        "keep_portable_guards_unsafe "
        "keep_tensor_guards_unsafe skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe "
        "skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe",
        values={"get_default_backend": lambda: "inductor"},
    ),
    "monitor": Part(_INTERNAL),
    "classes": Part(_INTERNAL, functions="load_library"),
    "vision.ops": Part(
        _VISION,
        functions="ps_roi_align ps_roi_pool drop_block2d drop_block3d",
        classes="MultiScaleRoIAlign PSRoIAlign PSRoIPool DropBlock2d DropBlock3d",
    ),
    "utils.cpp_extension": Part(
        "nothing is compiled against PyTorch's headers here",
        functions="load load_inline include_paths library_paths",
        classes="BuildExtension CppExtension CUDAExtension",
        values={"CUDA_HOME": None, "ROCM_HOME": None},
    ),
    "utils._contextlib": Part(_INTERNAL, here={"_DecoratorContextManager": "autograd.mode._Switch"}),
    "utils.deterministic": Part(_INTERNAL, values={"fill_uninitialized_memory": False}),
    "nn.utils._named_member_accessor": Part(_INTERNAL, here={"swap_tensor": "nn.utils.stateless._swap_tensor"}),
    "nn.utils._per_sample_grad": Part(
        "gradients of single examples come from torch.func.vmap and grad", functions="call_for_per_sample_grads"
    ),
    "backends.quantized": Part(
        _QUANTIZED, values={"engine": "x86", "supported_engines": ["qnnpack", "onednn", "x86", "fbgemm"]}
    ),
    "backends.nnpack": Part(_INTERNAL, no="is_available", values={"set_flags": lambda _enabled: (False,)}),
    "backends.xnnpack": Part(_INTERNAL, values={"enabled": False}),
    # Nothing is pinned: XLA copies from any memory.
    "utils.data._utils.pin_memory": Part("", values={"pin_memory": lambda data, device=None: data}),
    "utils._triton": Part(_NO_DEVICE, no="has_triton has_triton_package"),
    "utils._cxx_pytree": Part(_INTERNAL),
    "utils._stats": Part(_INTERNAL),
    "utils.mobile_optimizer": Part(_SCRIPT, functions="optimize_for_mobile"),
    "utils.bundled_inputs": Part(_SCRIPT),
}

# What is said of names that are not here at all, by pattern; the first that fits counts.
HINTS = {
    "nested nested.* masked masked.*": _NESTED,
    "sparse_bs* sparse.*emi* sparse.solve": _SPARSE,
    "*quantize* *quantized* quint* qint* contrib": _QUANTIZED,
    "sym_*": _SYMBOLS,
    "onnx.*": _ONNX,
    "utils.data.*ipe* utils.data.DataChunk utils.data.*determin* utils.data.*validat*": _PIPES,
    "cuda.*Tensor cuda.*Storage": _TYPED,
    "cuda.*allocator* cuda.*host_memory* cuda.MemPool* cuda.*[gG]raph* cuda.GreenContext accelerator.Graph": _CUDA,
    "profiler.* autograd.profiler.* cuda.profiler": _PROFILE,
    "jit.* Script* *Type ClassType CompilationUnit": _SCRIPT,
    "distributed.*": _ONE_PROCESS,
    "_inductor.* _dynamo.* compiler.* export.*": _TRACED,
    "utils.backcompat utils.*cpp* utils.cmake* utils.*privateuse1* cpp classes": _INTERNAL,
    "vision.*": _VISION,
}
