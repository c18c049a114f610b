"""Functions and classes that modules of other libraries have, for hints: importing them would take seconds.

Made from the versions of `zarrow.hints.names_of_others`, without names that NumPy has too.
"""

from __future__ import annotations

PANDAS = frozenset(
    """
    ArrowDtype BooleanDtype Categorical CategoricalDtype CategoricalIndex DataFrame DateOffset
    DatetimeIndex DatetimeTZDtype ExcelFile ExcelWriter Float32Dtype Float64Dtype Grouper HDFStore
    Index IndexSlice Int16Dtype Int32Dtype Int64Dtype Int8Dtype Interval IntervalDtype IntervalIndex
    MultiIndex NA NaT NamedAgg Period PeriodDtype PeriodIndex RangeIndex Series SparseDtype
    StringDtype Timedelta TimedeltaIndex Timestamp UInt16Dtype UInt32Dtype UInt64Dtype UInt8Dtype
    bdate_range col crosstab cut date_range describe_option factorize from_dummies get_dummies
    get_option infer_freq interval_range json_normalize lreshape melt merge merge_asof merge_ordered
    notna notnull offsets option_context period_range pivot pivot_table plotting qcut read_clipboard
    read_csv read_excel read_feather read_fwf read_hdf read_html read_iceberg read_json read_orc
    read_parquet read_pickle read_sas read_spss read_sql read_sql_query read_sql_table read_stata
    read_table read_xml reset_option set_eng_float_format set_option show_versions timedelta_range
    to_datetime to_numeric to_pickle to_timedelta wide_to_long
    """.split()
)

POLARS = frozenset(
    """
    BaseExtension Binary Boolean Categorical Categories CompatLevel Config CredentialProvider
    CredentialProviderAWS CredentialProviderAzure CredentialProviderFunction
    CredentialProviderFunctionReturn CredentialProviderGCP DataFrame DataType DataTypeExpr Date
    Datetime Decimal Duration Enum Expr Extension FileProviderArgs Float16 Float32 Float64 GPUEngine
    InMemoryEngine Int128 Int16 Int32 Int64 Int8 LazyFrame List Map Null Object
    ParquetDecryptionProperties ParquetEncryptionProperties PartitionBy QueryOptFlags RemoteEngine
    SQLContext ScanCastOptions Series StreamingEngine String StringCache Struct Time UInt128 UInt16
    UInt32 UInt64 UInt8 Unknown Utf8 all_horizontal any_horizontal approx_n_unique arg_sort_by
    arg_where business_day_count coalesce col collect_all concat_arr concat_list concat_str corr
    cum_count cum_fold cum_reduce cum_sum cum_sum_horizontal date_range date_ranges datetime
    datetime_range datetime_ranges delete_iceberg disable_string_cache dtype_of duration
    enable_string_cache escape_regex explain_all fold from_dataframe from_dict from_dicts from_epoch
    from_records from_repr get_extension_type get_index_type implode int_range int_ranges
    jemalloc_conf json_normalize linear_space linear_spaces lit map_batches map_groups
    max_horizontal mean_horizontal merge_sorted min_horizontal n_unique pipe_with_dtype read_avro
    read_clipboard read_csv read_database read_database_uri read_delta read_excel read_ipc
    read_ipc_schema read_ipc_stream read_json read_ndjson read_ods read_parquet
    read_parquet_metadata read_parquet_schema register_extension_type rolling_corr rolling_cov
    row_index scan_arrow_c_stream scan_csv scan_delta scan_external_reader scan_iceberg scan_ipc
    scan_lance scan_lines scan_ndjson scan_parquet scan_pyarrow_dataset selectors self_dtype
    set_random_seed show_versions sql sql_expr struct struct_with_fields sum_horizontal
    thread_pool_size time_range unregister_extension_type using_string_cache when
    """.split()
)

ARROW = frozenset(
    """
    Buffer BufferReader CacheOptions DictionaryMemo FixedSizeBufferWriter KeyValueMetadata
    MemoryMappedFile MessageReader MetadataVersion MonthDayNano NativeFile OSFile PythonFile
    RecordBatch RecordBatchFileReader RecordBatchFileWriter RecordBatchReader
    RecordBatchStreamReader RecordBatchStreamWriter ResizableBuffer SparseCOOTensor SparseCSCMatrix
    SparseCSFTensor SparseCSRMatrix TableGroupBy allocate_buffer binary binary_view bool8
    chunked_array compute concat_arrays concat_batches concat_tables cpu_count
    create_library_symlinks create_memory_map date32 date64 decimal128 decimal256 decimal32
    decimal64 decompress default_cpu_memory_manager default_memory_pool dense_union
    deserialize_pandas dictionary duration enable_signal_handlers fixed_shape_tensor foreign_buffer
    from_numpy_dtype get_libraries get_library_dirs have_libhdfs infer_type input_stream
    io_thread_count ipc is_opentelemetry_enabled jemalloc_memory_pool json_ large_binary large_list
    large_list_view large_string large_utf8 list_ list_view log_memory_allocations
    logging_memory_pool map_ memory_map mimalloc_memory_pool month_day_nano_interval nulls opaque
    output_stream proxy_memory_pool py_buffer record_batch register_extension_type run_end_encoded
    runtime_info serialize_pandas set_cpu_count set_io_thread_count set_memory_pool
    set_timezone_db_path show_info show_versions sparse_union string_view struct
    supported_memory_backends system_memory_pool time32 time64 timestamp total_allocated_bytes
    transcoding_input_stream type_for_alias unify_schemas unregister_extension_type utf8 uuid
    """.split()
)

TORCH = frozenset(
    """
    accelerator adaptive_avg_pool1d adaptive_max_pool1d affine_grid_generator alpha_dropout amp ao
    are_deterministic_algorithms_enabled autocast autograd avg_pool1d backends bartlett_window
    batch_norm bcomplex32 bilinear binary_cross_entropy_with_logits binomial blackman_window
    block_diag broadcast_tensors bucketize cartesian_prod cat cdist celu chain_matmul
    channel_shuffle clear_autocast_cache combinations compile compiler complex32 cond
    constant_pad_nd conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    convolution cosine_embedding_loss cosine_similarity ctc_loss cumulative_trapezoid distributed
    distributions dropout dsmm embedding embedding_bag empty_permuted empty_quantized empty_strided
    enable_grad feature_alpha_dropout feature_dropout fill float4_e2m1fn_x2 float8_e4m3fn
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu frobenius_norm from_file futures fx
    get_default_device get_default_dtype get_deterministic_debug_mode get_device_module
    get_file_path get_float32_matmul_precision get_num_interop_threads get_rng_state grid_sampler
    grid_sampler_2d grid_sampler_3d group_norm gru hamming_window hann_window hinge_embedding_loss
    inference_mode init_num_threads initial_seed instance_norm
    is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled
    is_storage is_tensor is_vulkan_available is_warn_always_enabled jit kaiser_window kl_div
    layer_norm lobpcg lstm lu_unpack manual_seed margin_ranking_loss masked matrix_rank max_pool1d
    max_pool1d_with_indices max_pool2d max_pool3d memory_format merge_type_from_type_comment monitor
    mps multiprocessing nested nn normal nuclear_norm optim overrides pairwise_distance pca_lowrank
    pdist pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar profiler quantization
    quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quasirandom rand rand_like
    randint randint_like randn randn_like randperm return_types rms_norm row_stack rrelu rsub
    scalar_tensor selu serialization set_anomaly_enabled set_default_device set_default_dtype
    set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
    set_flush_denormal set_grad_enabled set_num_interop_threads set_rng_state set_warn_always signal
    sparse special spmm std_mean svd_lowrank thread_safe_generator threshold to_dlpack torch_version
    trapz triplet_margin_loss use_deterministic_algorithms utils var_mean view_as_complex
    view_as_real vmap while_loop
    """.split()
)

JAX = frozenset(
    """
    CompilerEffortLevel NamedSharding ShapeDtypeStruct Shard block_until_ready checkpoint
    clear_caches closure_convert copy_to_host_async custom_gradient custom_jvp custom_vjp debug_infs
    debug_key_reuse debug_nans default_backend default_device default_matmul_precision device_get
    device_put disable_jit distributed dlpack effects_barrier empty_ref enable_checks enable_x64
    ensure_compile_time_eval eval_shape experimental ffi free_ref freeze fwd_and_bwd
    get_abstract_mesh get_mesh grad hessian host_count host_id host_ids jacfwd jacobian jacrev jit
    jvp lax linear_transpose linearize live_arrays local_device_count local_devices
    make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays
    make_jaxpr make_mesh monitoring named_call named_scope new_ref nn pmap print_environment_info
    process_count process_index process_indices profiler pure_callback remat reshard scipy set_mesh
    shard_map sharding smap stages tree_util use_abstract_mesh value_and_grad vjp vmap
    """.split()
)

XARRAY = frozenset(
    """
    CFTimeIndex Coordinates DataTree Dataset Index IndexSelResult IndexVariable NamedArray align
    apply_ufunc cftime_range coders coding combine_by_coords combine_nested corr date_range
    date_range_like decode_cf get_options group_subtrees groupers indexes infer_freq load_dataarray
    load_dataset load_datatree map_blocks map_over_datasets merge open_dataarray open_dataset
    open_datatree open_groups open_mfdataset open_zarr plot register_dataarray_accessor
    register_dataset_accessor register_datatree_accessor save_mfdataset set_options show_versions
    tutorial unify_chunks
    """.split()
)
