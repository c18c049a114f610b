"""Methods that arrays and tables of other libraries have, for hints: importing them would take seconds.

Made from PyTorch 2.15.0, pandas 3.1.1, polars 2.1.0, pyarrow 26.0.1 and xarray 2026.9.0.
"""

from __future__ import annotations

TORCH_TENSOR = frozenset(
    """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr adjoint all allclose amax amin
    aminmax angle any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort
    argwhere as_strided as_strided_scatter as_subclass asin asinh atan atan2 atanh backward baddbmm
    bernoulli bfloat16 bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor bmm bool broadcast_to byte ccol_indices cdouble ceil cfloat chalf
    char cholesky cholesky_inverse cholesky_solve chunk clamp clamp_max clamp_min clip clone coalesce
    col_indices conj conj_physical const_data_ptr contiguous copysign corrcoef cos cosh count_nonzero
    cov cpu cross crow_indices cuda cummax cummin cumprod cumsum data_ptr deg2rad dense_dim dequantize
    det detach diag diag_embed diagflat diagonal diagonal_scatter diff digamma dim dim_order dist div
    divide dot double dsplit eig element_size eq equal erf erfc erfinv exp exp2 expand expand_as expm1
    fix flatten flip fliplr flipud float float_power floor floor_divide fmax fmin fmod frac frexp gather
    gcd ge geqrf ger get_device grad grad_dtype grad_fn greater greater_equal gt half hardshrink
    hash_tensor heaviside histc histogram hsplit hypot i0 igamma igammac imag index_add index_copy
    index_fill index_put index_reduce index_select indices inner int int_repr inverse ipu is_coalesced
    is_complex is_conj is_contiguous is_cpu is_cuda is_distributed is_floating_point is_inference is_ipu
    is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_nonzero is_pinned is_quantized
    is_same_size is_set_to is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu isclose isfinite
    isinf isnan isneginf isposinf isreal istft item itemsize kron kthvalue lcm ldexp le lerp less
    less_equal lgamma log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logdet
    logical_and logical_not logical_or logical_xor logit logsumexp long lstsq lt lu lu_solve masked_fill
    masked_scatter masked_select matmul matrix_exp matrix_power max maximum mean median min minimum mm
    mode module_load moveaxis movedim msort mtia mul multinomial multiply mv mvlgamma nan_to_num nanmean
    nanmedian nanquantile nansum narrow narrow_copy nbytes ndimension ne neg negative nelement new
    new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter nonzero nonzero_static
    norm not_equal numel numpy orgqr ormqr outer output_nr permute pin_memory pinverse polygamma
    positive pow prelu prod put q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
    q_scale q_zero_point qr qscheme quantile rad2deg ravel real reciprocal record_stream register_hook
    register_post_accumulate_grad_hook reinforce relu remainder renorm repeat repeat_interleave
    requires_grad reshape reshape_as resize resize_as resolve_conj resolve_neg retain_grad retains_grad
    roll rot90 round row_indices rsqrt scatter scatter_add scatter_reduce select select_scatter sgn
    short sigmoid sign signbit sin sinc sinh slice_inverse slice_scatter slogdet smm softmax solve sort
    sparse_dim sparse_mask split split_with_sizes sqrt square squeeze sspaddmm std stft storage
    storage_offset storage_type stride sub subtract sum sum_to_size svd swapaxes swapdims symeig t take
    take_along_dim tan tanh tensor_split tile to to_dense to_mkldnn to_padded_tensor to_sparse
    to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr tolist topk trace transpose
    triangular_solve tril triu true_divide trunc type_as unbind unflatten unfold unique
    unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze untyped_storage var
    vdot view view_as volatile vsplit where xlogy xpu
    """.split()
)

PANDAS_SERIES = frozenset(
    """
    abs add add_prefix add_suffix agg aggregate align all any apply argmax argmin argsort array asfreq
    asof astype at at_time autocorr axes between between_time bfill case_when cat clip combine
    combine_first compare convert_dtypes copy corr count cov cummax cummin cumprod cumsum describe diff
    div divide divmod dot drop drop_duplicates droplevel dropna dt dtypes duplicated empty eq equals ewm
    expanding explode factorize ffill fillna filter first_valid_index floordiv from_arrow ge get groupby
    gt hasnans head hist iat idxmax idxmin iloc infer_objects info interpolate is_monotonic_decreasing
    is_monotonic_increasing is_unique isin isna isnull item items keys kurt kurtosis last_valid_index le
    list loc lt map mask max mean median memory_usage min mod mode mul multiply nbytes ne nlargest notna
    notnull nsmallest nunique pct_change pipe pop pow prod product quantile radd rank rdiv rdivmod
    reindex reindex_like rename rename_axis reorder_levels repeat replace resample reset_index rfloordiv
    rmod rmul rolling round rpow rsub rtruediv sample searchsorted sem set_axis set_flags shift skew
    sort_index sort_values sparse squeeze std str struct sub subtract sum swaplevel tail take
    to_clipboard to_csv to_dict to_excel to_frame to_hdf to_json to_latex to_list to_markdown to_numpy
    to_period to_pickle to_sql to_string to_timestamp to_xarray tolist transform transpose truediv
    truncate tz_convert tz_localize unique unstack update value_counts var where xs
    """.split()
)

PANDAS_FRAME = frozenset(
    """
    abs add add_prefix add_suffix agg aggregate align all any apply asfreq asof assign astype at at_time
    axes between_time bfill boxplot clip combine combine_first compare convert_dtypes copy corr corrwith
    count cov cummax cummin cumprod cumsum describe diff div divide dot drop drop_duplicates droplevel
    dropna dtypes duplicated empty eq equals eval ewm expanding explode ffill fillna filter
    first_valid_index floordiv from_arrow from_dict from_records ge get groupby gt head hist iat idxmax
    idxmin iloc infer_objects info insert interpolate isetitem isin isna isnull items iterrows
    itertuples join keys kurt kurtosis last_valid_index le loc lt map mask max mean median melt
    memory_usage merge min mod mode mul multiply ne nlargest notna notnull nsmallest nunique pct_change
    pipe pivot pivot_table pop pow prod product quantile query radd rank rdiv reindex reindex_like
    rename rename_axis reorder_levels replace resample reset_index rfloordiv rmod rmul rolling round
    rpow rsub rtruediv sample select select_dtypes sem set_axis set_flags set_index shift skew
    sort_index sort_values sparse squeeze stack std sub subtract sum swaplevel tail take to_clipboard
    to_csv to_dict to_excel to_feather to_hdf to_html to_iceberg to_json to_latex to_markdown to_numpy
    to_orc to_parquet to_period to_pickle to_records to_sql to_stata to_string to_timestamp to_xarray
    to_xml transform transpose truediv truncate tz_convert tz_localize unstack update value_counts var
    where xs
    """.split()
)

POLARS_SERIES = frozenset(
    """
    abs alias all any append approx_n_unique approx_quantile arccos arccosh arcsin arcsinh arctan
    arctanh arg_max arg_min arg_sort arg_true arg_unique arr backward_fill bin bin_intervals
    bin_quantiles bin_ranks bitwise_and bitwise_count_ones bitwise_count_zeros bitwise_leading_ones
    bitwise_leading_zeros bitwise_or bitwise_trailing_ones bitwise_trailing_zeros bitwise_xor bottom_k
    bottom_k_by cast cat cbrt ceil chunk_lengths clear clip clone cos cosh cot count cum_count cum_max
    cum_min cum_prod cum_sum cumulative_eval cut degrees describe diff dot drop_nans drop_nulls dt
    entropy eq eq_missing equals erf erfc estimated_size ewm_mean ewm_mean_by ewm_std ewm_sum ewm_sum_by
    ewm_var exp explode ext extend extend_constant fill_nan fill_null filter first floor forward_fill
    gather gather_every ge get_chunks gt has_nulls hash head hist implode index_of interpolate
    interpolate_by is_between is_close is_duplicated is_empty is_finite is_first_distinct is_in
    is_infinite is_last_distinct is_nan is_not_nan is_not_null is_null is_sorted is_unique item kurtosis
    last le len limit list log log10 log1p lower_bound lt map map_elements max max_by mean median min
    min_by mode n_chunks n_unique nan_max nan_min ne ne_missing new_from_index null_count pct_change
    peak_max peak_min pow product qcut quantile radians rank rechunk reinterpret rename repeat_by
    replace replace_strict reshape reverse rle rle_id rolling_kurtosis rolling_map rolling_max
    rolling_max_by rolling_mean rolling_mean_by rolling_median rolling_median_by rolling_min
    rolling_min_by rolling_quantile rolling_quantile_by rolling_rank rolling_rank_by rolling_skew
    rolling_std rolling_std_by rolling_sum rolling_sum_by rolling_var rolling_var_by round
    round_sig_figs sample scatter search_sorted set set_sorted shift shrink_dtype shrink_to_fit shuffle
    sign sin sinh skew slice sort sql sqrt std str struct sum tail tan tanh to_arrow to_dummies to_frame
    to_init_repr to_jax to_list to_numpy to_pandas to_physical to_torch top_k top_k_by truncate unique
    unique_counts upper_bound value_counts var zip_with
    """.split()
)

POLARS_FRAME = frozenset(
    """
    bottom_k cast clear clone collect_schema corr count describe deserialize drop drop_in_place
    drop_nans drop_nulls dtypes equals estimated_size explode extend fill_nan fill_null filter fold
    gather gather_every get_column get_column_index get_columns glimpse group_by group_by_dynamic
    hash_rows head height hstack insert_column interpolate is_duplicated is_empty is_sorted is_unique
    item iter_columns iter_rows iter_slices join join_asof join_where lazy limit map_columns map_rows
    match_to_schema max max_horizontal mean mean_horizontal median merge_sorted min min_horizontal
    n_chunks n_unique null_count partition_by pipe pivot product quantile rechunk remove rename
    replace_column reverse rolling row rows rows_by_key sample schema select select_seq serialize
    set_sorted shift show shrink_to_fit slice sort sql std sum sum_horizontal tail to_arrow to_dict
    to_dicts to_dummies to_init_repr to_jax to_numpy to_pandas to_series to_struct to_torch top_k
    transpose unique unnest unpivot unstack update upsample var vstack width with_columns
    with_columns_seq with_row_index write_avro write_clipboard write_csv write_database write_delta
    write_excel write_iceberg write_ipc write_ipc_stream write_json write_ndjson write_parquet
    """.split()
)

ARROW_TABLE = frozenset(
    """
    add_column append_column cast column column_names combine_chunks drop drop_columns drop_null equals
    field filter flatten from_arrays from_batches from_pandas from_pydict from_pylist from_struct_array
    get_total_buffer_size group_by is_cpu itercolumns join join_asof nbytes num_columns num_rows
    remove_column rename_columns replace_schema_metadata schema select set_column slice sort_by take
    to_batches to_pandas to_pydict to_pylist to_reader to_string to_struct_array to_tensor
    unify_dictionaries validate
    """.split()
)

XARRAY_ARRAY = frozenset(
    """
    all any argmax argmin argsort as_numpy assign_attrs assign_coords astype bfill broadcast_equals
    broadcast_like chunk chunks chunksizes clip close coarsen combine_first compute conj conjugate
    convert_calendar coords copy count cumprod cumsum cumulative cumulative_integrate curvefit diff
    differentiate dims dot drop drop_attrs drop_duplicates drop_encoding drop_indexes drop_isel drop_sel
    drop_vars dropna dt encoding equals expand_dims ffill fillna from_dict from_iris from_series
    get_axis_num get_index groupby groupby_bins head identical idxmax idxmin imag indexes integrate
    interp interp_calendar interp_like interpolate_na isel isin isnull item load load_async loc
    map_blocks max mean median min nbytes notnull pad persist pipe polyfit prod quantile query rank real
    reduce reindex reindex_like rename reorder_levels resample reset_coords reset_encoding reset_index
    roll rolling rolling_exp round searchsorted sel set_close set_index set_xindex shift sizes sortby
    squeeze stack std str sum swap_dims tail thin to_dask_dataframe to_dataframe to_dataset to_dict
    to_index to_iris to_masked_array to_netcdf to_numpy to_pandas to_series to_unstacked_dataset to_zarr
    transpose unify_chunks unstack var variable weighted where xindexes
    """.split()
)
